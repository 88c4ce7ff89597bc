"""How many shards the observed demand needs.

The evidence of a process shows the demand of all, and so the count that can take it.
"""

import math
from typing import Final

from dynashard.growth.evidence import Evidence

_FULL: Final = 0.75
"""The share of a shard's units that a target plans with: demand fluctuates, and shards can meet on one physical
partition."""
_TOLERATED: Final = 0.05
"""The share by which demand may exceed what shards take: some may share a physical partition until that is split."""
_WIDESPREAD: Final = 0.75
"""The share of shards with throttles from which on a shared physical partition is not the reason."""
_NOTICEABLE: Final = 0.1
"""The share of requests that were executed after throttles, from which on they show that shards are too few."""


def enough(evidence: Evidence) -> bool:
    """Whether the shards take what is asked of them, and only some of them throttle.

    Then these share a hot physical partition. Callers that wait for their retries ask for little more than the shards
    take, even if all of them throttle. If no throttle outlasted the retries, few of them are enough too.
    """
    if not evidence.throttled and evidence.retried < _NOTICEABLE * evidence.requests:
        return True
    widespread = evidence.refusing >= _WIDESPREAD * len(evidence.shards)
    return not widespread and evidence.excess < 1 + _TOLERATED


def target_count(evidence: Evidence, *, ceiling: int, moves: bool = True) -> int:
    """Return the count for a demand that a count is too small for: at least its double, but at most the ceiling.

    If the resize `moves` items, the estimate is cautious, because it takes units from the shards that are hot. Else it
    is bold, because new shards cost next to nothing, and missing ones take another resize with its waits.
    """
    count = len(evidence.shards)
    excess = evidence.proven_excess if moves else evidence.possible_excess
    return min(max(2 * count, power_of_two(count * excess / _FULL)), ceiling)


def power_of_two(number: float) -> int:
    """Return the least power of two that is not below a number, at least 1."""
    return 1 << math.ceil(math.log2(number)) if number > 1 else 1
