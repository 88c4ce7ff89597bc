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

    Raises:
        ConfigurationError: no lease, or a negative time.
    """

    lease: float = DEFAULT_LEASE
    operation: float = 30.0
    skew: float = 1.0

    def __post_init__(self) -> None:
        if self.lease <= 0:
            raise ConfigurationError("the lease of a view must be above 0 seconds")
        if self.operation < 0 or self.skew < 0:
            raise ConfigurationError("operation and skew are times in seconds and may not be negative")

    def wait(self, lease: float) -> float:
        """Seconds after a publication until nobody acts on what held before it, under views of this lease."""
        return lease + self.operation + self.skew
