"""How long a published phase takes to reach every client."""

from dataclasses import dataclass, field

from dynashard.errors import ConfigurationError
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds
from dynashard.topology import DEFAULT_LEASE, Record


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds on how long a client may act on an earlier publication; all in seconds.

    No lease, or a negative time, raises `ConfigurationError`.

    Attributes:
        lease: how long a view may be used.
        operation: the longest operation, retries included.
        skew: how far clocks may be apart.
        clocks: how far wall clocks may be off, and keys ahead of them, where a count depends on the time of a key.
        margin: how long publishing an epoch and confirming it may take, waits aside.
        lag: how long a transaction may be visible in part, and an eventually consistent read miss a write: clients read
            only the new home of the item that was moved last after that time. 0 for an engine without either.
    """

    lease: float = DEFAULT_LEASE
    operation: float = 30.0
    skew: float = 1.0
    lag: float = 5.0
    clocks: ClockBounds = field(default=DEFAULT_BOUNDS, kw_only=True)
    margin: float = field(default=5.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.lease <= 0:
            raise ConfigurationError(f"the lease of a view is {self.lease:g} seconds; it must be above 0 seconds")
        if min(self.operation, self.skew, self.lag, self.margin) < 0:
            times = f"operation {self.operation:g}, skew {self.skew:g}, lag {self.lag:g}, margin {self.margin:g}"
            raise ConfigurationError(f"{times} seconds: none may be below 0")

    def known_after(self, lease: float) -> float:
        """Return the seconds after an epoch was seen stored until every view of this lease in use has it.

        Two controllers may take turns, whose clocks are off in opposite directions.
        """
        return lease + 2 * self.clocks.off

    def ahead(self, lease: float) -> float:
        """Return how many seconds ahead of its controller's clock an epoch begins."""
        return self.known_after(lease) + self.clocks.placed + self.margin

    def wait(self, lease: float) -> float:
        """Return the seconds after a publication until no view of this lease precedes it."""
        return lease + self.operation + self.skew

    def longest(self, family: Record, now: float) -> float:
        """Return the longest lease that a client may hold, in seconds; the family's record was read at `now`."""
        lowered = now if family.lowered_at is None else family.lowered_at
        if now < lowered + self.wait(family.former_lease):
            return max(family.granted, family.former_lease)
        return family.granted
