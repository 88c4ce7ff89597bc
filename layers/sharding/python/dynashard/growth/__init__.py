"""Shard counts that change by themselves: throttles are counted, a policy decides, and a resize request is stored.

`opening` hands throttles to the policy, and imports what decides only after the first one.
"""

from dynashard.growth.opening import GrowthOptions
from dynashard.growth.settings import GrowthSettings

__all__ = [
    "GrowthOptions",
    "GrowthSettings",
]
