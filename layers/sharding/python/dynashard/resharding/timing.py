"""How long a published phase takes to reach everybody."""

from dataclasses import dataclass

from dynashard.errors import ConfigurationError
from dynashard.topology import DEFAULT_LEASE


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
