"""How long a published phase takes to reach everybody."""

from dataclasses import dataclass

from dynashard.errors import ConfigurationError
from dynashard.topology import DEFAULT_LEASE, Record


@dataclass(frozen=True, slots=True)
class Timing:
    """What bounds how long anybody may act on what was published before; all in seconds.

    Attributes:
        lease: how long a view may be used.
        operation: the longest operation, retries included.
        skew: how far clocks may be apart.
        lag: how long a transaction may be visible in part, and an eventually consistent read miss what was written:
            what was moved last must be seen at its new place before anybody looks only there. 0 for an engine that
            knows neither.

    Raises:
        ConfigurationError: no lease, or a negative time.
    """

    lease: float = DEFAULT_LEASE
    operation: float = 30.0
    skew: float = 1.0
    lag: float = 5.0

    def __post_init__(self) -> None:
        if self.lease <= 0:
            raise ConfigurationError("the lease of a view must be above 0 seconds")
        if min(self.operation, self.skew, self.lag) < 0:
            raise ConfigurationError("operation, skew and lag are times in seconds and may not be negative")

    def wait(self, lease: float) -> float:
        """Seconds after a publication until nobody acts on what held before it, under views of this lease."""
        return lease + self.operation + self.skew

    def over(self, family: Record, published: float, now: float) -> float:
        """When nobody acts any more on what held before a publication, in epoch seconds.

        A lease that was lowered is honoured to its end: whoever was given the former one may use it that long.

        Args:
            family: the record of the family, read after the publication: every view is read under its lease.
            published: when the publication was seen, in epoch seconds.
            now: when the record was read at the latest, in epoch seconds.
        """
        end = published + self.wait(family.granted)
        if not family.former_lease:
            return end
        lowered = now if family.lowered_at is None else family.lowered_at
        return max(end, lowered + self.wait(family.former_lease))

    def longest(self, family: Record, now: float) -> float:
        """The longest lease that somebody may hold now, in seconds; arguments as those of `over`."""
        lowered = now if family.lowered_at is None else family.lowered_at
        if now < lowered + self.wait(family.former_lease):
            return max(family.granted, family.former_lease)
        return family.granted
