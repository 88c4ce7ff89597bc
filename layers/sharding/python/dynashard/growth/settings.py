"""The settings of the growth policy, and how it learns about the load of a table. It imports no resharding."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from msgspec import Struct

from dynashard.errors import ConfigurationError

GrowthMode = Literal["on", "dry_run", "off"]
GROWTH_MODES: Final[tuple[GrowthMode, ...]] = ("on", "dry_run", "off")
ON_DEMAND_LIMIT: Final = 40_000
"""Units per second of an on-demand table or index, unless the account's quota or a maximum says otherwise."""


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How counts change by themselves; times in seconds.

    Attributes:
        mode: `on`; `dry_run`, which only reports what it would request; `off`, which does nothing.
        cooldown_seconds: how long a count is left alone after a resize.
        quiet_seconds: how long a count must be unchanged before it is halved.
        most_minutes: how long a resize may be expected to take that starts by itself and moves items.
        mover_share: the part of each shard's units that moving items may take.
        wait_low, wait_high: the bounds of the random wait before a resize is requested.
        environment: the deployed environment, which commands in reports name; empty if there is none.

    Raises:
        ConfigurationError: an unknown mode, or impossible times.
    """

    mode: GrowthMode = "on"
    cooldown_seconds: float = 300.0
    quiet_seconds: float = 24 * 3600.0
    most_minutes: float = 10.0
    mover_share: float = 0.2
    wait_low: float = 1.0
    wait_high: float = 10.0
    environment: str = ""

    def __post_init__(self) -> None:
        if self.mode not in GROWTH_MODES:
            raise ConfigurationError(f"growth mode is {self.mode!r}; use {', '.join(GROWTH_MODES)}")
        if not 0 < self.cooldown_seconds <= self.quiet_seconds:
            raise ConfigurationError(
                f"growth cooldown_seconds is {self.cooldown_seconds:g} and quiet_seconds {self.quiet_seconds:g}; the "
                "first must be above 0, and the second not below it"
            )
        if not self.most_minutes > 0 or not 0 < self.mover_share <= 1:
            raise ConfigurationError(
                f"growth most_minutes is {self.most_minutes:g} and mover_share {self.mover_share:g}; the first must be "
                "above 0, and the second above 0 and at most 1"
            )
        if not 0 <= self.wait_low <= self.wait_high:
            raise ConfigurationError(
                f"growth wait_low is {self.wait_low:g} and wait_high {self.wait_high:g}; the first must be at least 0, "
                "and the second not below it"
            )

    @property
    def most_seconds(self) -> float:
        """How long a resize may be expected to take that starts by itself and moves items, in seconds."""
        return 60 * self.most_minutes


DEFAULTS: Final = GrowthSettings()


class Load(Struct, frozen=True):
    """How busy a table or index is, compared with its limit.

    Attributes:
        below: whether it was throttled although it was below its limit as a whole, so that a key range is hot; False
            if it is at its limit; None if that is unknown.
        reason: why, as a sentence.
    """

    below: bool | None
    reason: str


class LoadSource(Protocol):
    """Reports how busy the table or an index is; such as CloudWatch. Never raises."""

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        """Return the load in the last minutes."""
        ...

    def limit(self, *, index: str | None = None, writing: bool = True) -> float | None:
        """Return what the table or index can give now, in units a second; None if that is unknown."""
        ...

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        """Return whether nothing was throttled for so many seconds; None if that is unknown."""
        ...
