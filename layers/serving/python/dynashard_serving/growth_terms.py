"""What the growth policy is set to, what it is given to look and ask with, and what it has to tell."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from dynashard.errors import ConfigurationError
from dynashard.resharding.scope import Scope
from dynashard_serving.table_load import Load


@dataclass(frozen=True, slots=True)
class Standing:
    """A shard count as it stands: the count, when it last changed in epoch seconds, and whether it is changing."""

    count: int
    changed: float
    busy: bool


Ask = Callable[[Scope, int], object]
"""Asks for a count, on condition that nobody else has changed the record meanwhile.

It raises `ReshardRefusedError` if the change cannot be, or not now, and `TopologyChangedError` if others were first.
"""

Present = Callable[[Scope], Standing]
"""Tells the count as the topology table has it now. It raises `DynashardError` if that cannot be read."""


class AskLoad(Protocol):
    """Tells how busy the table or an index is; see `dynashard_serving.table_load`. Never raises."""

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        """The load in the last minutes."""
        ...

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        """Whether nothing was throttled for so many seconds; None if nobody knows."""
        ...


class News(StrEnum):
    """What the policy has to tell."""

    ASKED = "asked"
    """A change was asked for."""
    WOULD_ASK = "would_ask"
    """A change would have been asked for, but for the dry run."""
    REFUSED = "refused"
    """The controller refused the change."""
    LOST = "lost"
    """Somebody else was first."""
    CANNOT = "cannot"
    """A key range is hot, and no automatic change can help: the declaration is at its end."""
    LIMIT = "limit"
    """The table, the index or the account is at a limit of its own: more shards would not help."""
    UNKNOWN = "unknown"
    """DynamoDB gave no reason for a throttle, and nobody else knows it."""
    FAILED = "failed"
    """Looking or asking failed."""


@dataclass(frozen=True, slots=True)
class Report:
    """Something the policy has to tell.

    Attributes:
        news: what.
        entity: the entity's name.
        partition: the logical partition; None if it concerns none.
        index: the slot of the index; None if it concerns none.
        told: a sentence for people, with the remedy where there is one.
        target: the count asked for.
    """

    news: News
    entity: str
    partition: str | None
    index: str | None
    told: str
    target: int | None = None


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How counts change by themselves; times in seconds.

    Attributes:
        mode: `on`; `dry_run`, which tells what it would ask for; `off`, which does nothing at all.
        cooldown_seconds: how long a count is left alone after it changed.
        quiet_seconds: how long it must have stood before it is halved.
        wait_low, wait_high: the bounds of the random wait before a change is asked for.

    Raises:
        ConfigurationError: another mode, or times that cannot be.
    """

    mode: Literal["off", "dry_run", "on"] = "on"
    cooldown_seconds: float = 300.0
    quiet_seconds: float = 24 * 3600.0
    wait_low: float = 1.0
    wait_high: float = 10.0

    def __post_init__(self) -> None:
        if self.mode not in ("off", "dry_run", "on"):
            raise ConfigurationError(f"growth mode {self.mode!r}: use off, dry_run or on")
        if self.cooldown_seconds <= 0 or self.quiet_seconds < self.cooldown_seconds:
            raise ConfigurationError("growth needs a cooldown above 0 s, and a quiet time that is no shorter")
        if not 0 <= self.wait_low <= self.wait_high:
            raise ConfigurationError("growth waits from wait_low to wait_high seconds, neither below 0")
