"""How many units a second one task of a resize may consume, so that no shard gives more than the mover's share.

A task reads one shard at a time. Moving writes as much to the old shard as to the new one, so it may consume twice the
share; deleting markers writes to the old shard alone. If the count shrinks, several tasks write to one remaining shard.
"""

from dataclasses import dataclass

from dynashard.placement import UNSHARDED
from dynashard.resharding.progress import Pass
from dynashard.resharding.share import Share


@dataclass(frozen=True, slots=True)
class Rate:
    """What a task may consume in a second.

    Attributes:
        writes, reads: units.
        write: the write units of its smallest write.
    """

    writes: float
    reads: float
    write: float


@dataclass(frozen=True, slots=True)
class Course:
    """How a resize divides its work.

    Attributes:
        origin, target: the counts.
        workers: how many tasks are worked on at a time.
        rewrites: whether it rewrites entries of an index in place.
        budget: write units a second that all tasks may consume; None for no such bound.
    """

    origin: int
    target: int
    workers: int
    rewrites: bool = False
    budget: float | None = None

    @property
    def feeding(self) -> int:
        """How many tasks may write to one shard at the same time."""
        if not UNSHARDED < self.target < self.origin:
            return 1
        return max(1, min(self.workers, (self.origin - self.target) // self.target))

    def rate(self, kind: Pass, share: Share) -> Rate:
        """Return the rate of one task in a pass."""
        if self.rewrites:
            # All entries may belong to one partition of the index, which has one shard for each of its count.
            writes, write = share.writes * max(1, self.origin) / self.workers, 3.0
        elif kind is Pass.SWEEP:
            writes, write = share.writes, 1.0
        else:
            writes, write = 2 * share.writes / self.feeding, 4.0
        if self.budget is not None:
            writes = min(writes, self.budget / self.workers)
        return Rate(writes, share.reads, write)
