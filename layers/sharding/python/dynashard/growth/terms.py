"""What the growth policy reads and requests through, and the events that it reports."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dynashard.resharding.scope import Scope


@dataclass(frozen=True, slots=True)
class CountState:
    """A shard count, and how it changes.

    Attributes:
        changed: when it last changed, in epoch seconds.
        busy: whether it is changing now.
        narrowing: whether it is to shrink and nothing has moved: with random placement, it waits for empty shards.
        declined: what the last resize would have taken that began by itself, if it was declined for that.
        target: the count of the resize that is under way, or was declined.
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

It raises `ReshardRefusedError` if the resize is impossible now, and `TopologyChangedError` if another was first.
"""

ReadCount = Callable[[Scope], CountState]
"""Reads the count from the topology table. It raises `DynashardError` if that is impossible."""


WithdrawCount = Callable[[Scope], object]
"""Takes a resize back that has moved nothing. It raises as `RequestCount`."""


class GrowthEvent(StrEnum):
    """What the policy reports."""

    ASKED = "asked"
    """A resize was requested."""
    WOULD_ASK = "would_ask"
    """A resize would have been requested without the dry run."""
    REFUSED = "refused"
    """The controller refused the resize."""
    LOST = "lost"
    """Another process was first."""
    KEPT = "kept"
    """The count stays for now: it changes already, has just changed, is large enough, or another key is hot."""
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


def arguments_of(scope: Scope) -> str:
    """Return the arguments that name a scope, as a shell takes them: `user.v1.User abc`."""
    entity = scope.entity
    if scope.index is not None:
        return f"{entity.name} --index {scope.index.name}"
    prefix = f"{entity.prefix}{entity.separator}" if entity.prefix else ""
    return shlex.join([entity.name, *([] if scope.partition is None else [scope.partition.removeprefix(prefix)])])
