"""The settings of the growth policy, what it reads and requests through, and the events that it reports."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from dynashard.errors import ConfigurationError
from dynashard.resharding.scope import Scope
from dynashard_serving.table_load import Load


@dataclass(frozen=True, slots=True)
class CountState:
    """A shard count, and how it changes.

    Attributes:
        changed: when it last changed, in epoch seconds.
        busy: whether it is changing now.
        narrowing: whether it waits until the shards that random placement leaves are empty.
        declined: what the last change would have taken that began by itself, if it was declined for that.
        target: the count of the change that is under way, or was declined.
    """

    count: int
    changed: float
    busy: bool
    narrowing: bool = False
    declined: str | None = None
    target: int | None = None


RequestCount = Callable[[Scope, int, float], object]
"""Requests a count, unless another process has changed the record meanwhile.

The third argument is the share of a shard's write units with which callers create items.

It raises `ReshardRefusedError` if the change is impossible now, and `TopologyChangedError` if another was first.
"""

ReadCount = Callable[[Scope], CountState]
"""Reads the count from the topology table. It raises `DynashardError` if that is impossible."""


WithdrawCount = Callable[[Scope], object]
"""Takes a change back that has moved nothing. It raises as `RequestCount`."""


class LoadSource(Protocol):
    """Reports how busy the table or an index is; see `dynashard_serving.table_load`. Never raises."""

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        """Return the load in the last minutes."""
        ...

    def limit(self, *, index: str | None = None, writing: bool = True) -> float | None:
        """Return what the table or index can give now, in units a second; None if that is unknown."""
        ...

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        """Return whether nothing was throttled for so many seconds; None if that is unknown."""
        ...


class GrowthEvent(StrEnum):
    """What the policy reports."""

    ASKED = "asked"
    """A change was requested."""
    WOULD_ASK = "would_ask"
    """A change would have been requested without the dry run."""
    REFUSED = "refused"
    """The controller refused the change."""
    LOST = "lost"
    """Another process was first."""
    WITHDRAWN = "withdrawn"
    """A count that waited to be halved keeps its shards, because they are needed."""
    TOO_LONG = "too_long"
    """More shards would help, but moving the items would take too long: an operator decides."""
    CANNOT = "cannot"
    """A key range is hot, but the declaration allows no more shards."""
    LIMIT = "limit"
    """The table, the index or the account is at a limit of its own: more shards would not help."""
    UNKNOWN = "unknown"
    """DynamoDB gave no reason for a throttle, and CloudWatch does not know it either."""
    FAILED = "failed"
    """The count could not be read or changed."""


@dataclass(frozen=True, slots=True)
class Report:
    """An event of the policy.

    Attributes:
        event: its kind.
        entity: the entity's name.
        partition: the logical partition; None if the event concerns none.
        index: the slot of the index; None if the event concerns none.
        reason: a sentence for people, with the remedy if there is one.
        target: the requested count.
    """

    event: GrowthEvent
    entity: str
    partition: str | None
    index: str | None
    reason: str
    target: int | None = None


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """How counts change by themselves; times in seconds.

    Attributes:
        mode: `on`; `dry_run`, which only reports what it would request; `off`, which does nothing.
        cooldown_seconds: how long a count is left alone after a change.
        quiet_seconds: how long a count must be unchanged before it is halved.
        most_minutes: how long a change may be expected to take that starts by itself and moves items.
        mover_share: the part of each shard's units that moving items may take.
        wait_low, wait_high: the bounds of the random wait before a change is requested.

    Raises:
        ConfigurationError: an unknown mode, or impossible times.
    """

    mode: Literal["off", "dry_run", "on"] = "on"
    cooldown_seconds: float = 300.0
    quiet_seconds: float = 24 * 3600.0
    most_minutes: float = 10.0
    mover_share: float = 0.2
    wait_low: float = 1.0
    wait_high: float = 10.0

    def __post_init__(self) -> None:
        if self.mode not in ("off", "dry_run", "on"):
            raise ConfigurationError(f"growth mode {self.mode!r}: use off, dry_run or on")
        if self.cooldown_seconds <= 0 or self.quiet_seconds < self.cooldown_seconds:
            raise ConfigurationError("growth needs a cooldown above 0 s, and a quiet time that is no shorter")
        if self.most_minutes <= 0 or not 0 < self.mover_share <= 1:
            raise ConfigurationError("growth needs minutes above 0, and a mover's share above 0 and at most 1")
        if not 0 <= self.wait_low <= self.wait_high:
            raise ConfigurationError("growth waits from wait_low to wait_high seconds, neither below 0")


def arguments_of(scope: Scope) -> str:
    """Return the arguments that name a scope on the command line: `user.v1.User abc`."""
    entity = scope.entity
    if scope.index is not None:
        return f"{entity.name} --index {scope.index.name}"
    prefix = f"{entity.prefix}{entity.separator}" if entity.prefix else ""
    return entity.name if scope.partition is None else f"{entity.name} {scope.partition.removeprefix(prefix)}"
