"""What the mover, the rewriter and the sweeper may take of each shard, so that callers keep the rest."""

from dataclasses import dataclass
from typing import Final

from dynashard.errors import ConfigurationError

SHARD_WRITE_UNITS: Final = 1_000.0
SHARD_READ_UNITS: Final = 3_000.0
"""What one physical partition, and so one shard, gives in a second."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a shard's units that a resize may take; raises `ConfigurationError` if it is not above 0 and up to 1.

    Attributes:
        part: of the units of each shard that items leave or come to.
        write_units, read_units: what a shard gives in a second.
    """

    part: float = 0.2
    write_units: float = SHARD_WRITE_UNITS
    read_units: float = SHARD_READ_UNITS

    def __post_init__(self) -> None:
        if not 0 < self.part <= 1:
            raise ConfigurationError(f"the mover's share is {self.part:g}; it must be above 0 and at most 1")

    @property
    def writes(self) -> float:
        """Write units a second of one shard."""
        return self.part * self.write_units

    @property
    def reads(self) -> float:
        """Read units a second of one shard."""
        return self.part * self.read_units
