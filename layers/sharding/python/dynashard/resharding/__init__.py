"""Changing shard counts while traffic flows: the controller, the mover, and the sweeper."""

from dynashard.resharding.estimate import Estimate
from dynashard.resharding.resharder import Resharder
from dynashard.resharding.scope import Scope
from dynashard.resharding.share import Share
from dynashard.resharding.status import Status, Step
from dynashard.resharding.timing import Timing

__all__ = [
    "Estimate",
    "Resharder",
    "Scope",
    "Share",
    "Status",
    "Step",
    "Timing",
]
