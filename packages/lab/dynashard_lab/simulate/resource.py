"""A table or an index: its partitions, and its throughput in both directions."""

from dataclasses import dataclass

from dynashard.errors import ThrottleReason
from dynashard_lab.simulate.bucket import Bucket
from dynashard_lab.simulate.capacity import Capacity, OnDemand, partitions_for
from dynashard_lab.simulate.partitions import Partitions
from dynashard_lab.simulate.settings import Limit, Settings


class Throughput:
    """One direction of a table or index: what it may consume, and what it has consumed."""

    __slots__ = ("_operation", "_reasons", "_resource", "_reviewed", "bucket", "capacity", "consumed", "paid_units")

    def __init__(self, capacity: Capacity, operation: str, arn: str) -> None:
        self.capacity = capacity
        level = capacity.units * min(capacity.saved, capacity.burst_seconds)
        self.bucket = Bucket(capacity.units, capacity.burst_seconds, level=level)
        self.consumed = self._reviewed = 0.0
        self.paid_units = 0.0
        """Provisioned units times the seconds for which they were provisioned."""
        self._resource = arn
        self._operation = operation
        self._reasons: dict[Limit, ThrottleReason] = {}

    def exceeded(self, limit: Limit) -> ThrottleReason:
        """Return the reason of a throttle by a limit."""
        found = self._reasons.get(limit)
        if found is None:
            kind = "Index" if "/index/" in self._resource else "Table"
            found = ThrottleReason(f"{kind}{self._operation}{limit}Exceeded", self._resource)
            self._reasons[limit] = found
        return found

    def review(self, now: float, seconds: float) -> None:
        """Let the capacity follow what was consumed in the last seconds."""
        if self.capacity.billed:
            self.paid_units += self.capacity.units * seconds
        self.capacity.review(now, (self.consumed - self._reviewed) / seconds)
        self._reviewed = self.consumed
        if self.capacity.units != self.bucket.rate:
            self.bucket.set_rate(now, self.capacity.units)


@dataclass(frozen=True, slots=True)
class Capacities:
    """The capacity of a table or index in both directions."""

    writes: Capacity
    reads: Capacity

    def partitions(self, settings: Settings) -> int:
        """Return how many partitions they need."""
        made_for = [each.ceiling if isinstance(each, OnDemand) else each.units for each in (self.writes, self.reads)]
        return partitions_for(made_for[0], made_for[1], settings, provisioned=self.writes.billed)


class Resource:
    """A table or an index."""

    __slots__ = ("_capacities", "_settings", "next_review", "partitions", "provisioned", "reads", "writes")

    def __init__(
        self, arn: str, capacities: Capacities, settings: Settings, *, partitions: int = 1, local_index: bool = False
    ) -> None:
        self._settings = settings
        self._capacities = capacities
        self.provisioned = capacities.writes.billed
        self.writes = Throughput(capacities.writes, "Write", arn)
        self.reads = Throughput(capacities.reads, "Read", arn)
        count = max(partitions, capacities.partitions(settings))
        self.partitions = Partitions(count, settings, items_may_part=not local_index)
        self.next_review = settings.review_seconds

    def review(self, now: float) -> None:
        """Do every review that is due: follow peaks, targets and schedules, and add the partitions they need."""
        seconds = self._settings.review_seconds
        while self.next_review <= now:
            at = self.next_review
            self.writes.review(at, seconds)
            self.reads.review(at, seconds)
            self.partitions.grow(self._capacities.partitions(self._settings), at)
            self.next_review += seconds

    def paid(self, now: float) -> tuple[float, float]:
        """Return the provisioned write units and read units, times the seconds for which they were provisioned."""
        self.review(now)
        rest = now - (self.next_review - self._settings.review_seconds)
        writes, reads = self.writes, self.reads
        return writes.paid_units + rest * writes.capacity.units, reads.paid_units + rest * reads.capacity.units
