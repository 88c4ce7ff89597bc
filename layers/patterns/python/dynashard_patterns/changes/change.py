"""A change of an item, and its consumers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from dynashard.entity import Entity

E = TypeVar("E", bound=Entity)
Kind = Literal["created", "updated", "deleted", "expired"]


@dataclass(frozen=True, slots=True)
class Change(Generic[E]):
    """What has happened to one item, such as `Change[Incident]` for consumers of one entity.

    Attributes:
        kind: `created`, `updated`, `deleted`, or `expired`: the table's TTL, or the layer, deleted an expired item.
        entity: the item's class.
        key: its key fields.
        old: the item before; None for `created`.
        new: the item after; None for `deleted` and `expired`.
        sequence: the number of the record in its part of the stream. Larger is later there; numbers of two parts
            cannot be compared.
        at: when it was stored, in epoch seconds, to the second; None if the record does not say.
    """

    kind: Kind
    entity: type[E]
    key: Mapping[str, Any]
    old: E | None
    new: E | None
    sequence: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer of the changes of some entities.

    Changes come at least once, in batches. Those of one stored item come in order, those of different items in any; an
    item that moves to another shard is another stored item from then on. So what `handle` does must be right when it is
    done again, and must not trust that nothing has happened since.

    Attributes:
        name: what it is called in logs and dead letters.
        entities: whose changes it gets.
        handle: takes a batch. What it raises decides what happens: an error that can pass (throttling, a conflict, an
            engine out of reach) brings the batch again; any other is a fault of a change, which is searched for and set
            aside as a dead letter.
    """

    name: str
    entities: Sequence[type[Entity]]
    handle: Callable[[Sequence[Change[Any]]], None]
