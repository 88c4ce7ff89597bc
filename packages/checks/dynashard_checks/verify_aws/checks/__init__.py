"""All checks, in the order in which they run."""

from typing import Final

from dynashard_checks.verify_aws.check import Check
from dynashard_checks.verify_aws.checks import (
    api,
    capacity,
    clocks,
    hot_keys,
    items,
    logs,
    queues,
    reads,
    streams,
    throttles,
    transactions,
)

CHECKS: Final[tuple[Check, ...]] = (
    *api.CHECKS,
    *items.CHECKS,
    *clocks.CHECKS,
    *reads.CHECKS,
    *transactions.CHECKS,
    *queues.CHECKS,
    *streams.CHECKS,
    *throttles.CHECKS,
    *hot_keys.CHECKS,
    *capacity.CHECKS,
    *logs.CHECKS,
)
"""Every check, the quick ones first."""
