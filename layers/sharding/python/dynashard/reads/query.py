"""What a caller asks of a listing, checked, and the page that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import orjson

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import InvalidQueryError
from dynashard.keys import utf8
from dynashard.reads.bounds import Bounds
from dynashard.reads.cursor import FINGERPRINT_BYTES
from dynashard.reads.filters import Filter, FilterExpression
from dynashard.schema import MAX_SORT_KEY_BYTES
from dynashard.transport.interface import Consumed

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 50

I = TypeVar("I")  # noqa: E741 - the item


class Order(StrEnum):
    """In which order a listing returns items."""

    ROUND_ROBIN = "round_robin"
    """A page from one shard, the next from the next: cheapest, and fair to all shards."""
    ORDERED = "ordered"
    """By sort key over all shards."""
    SHARD = "shard"
    """Shard 0 to its end, then shard 1."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work one call may do before it returns a short page.

    Attributes:
        requests: Query requests.
        read_units: read capacity units.
    """

    requests: int = 2000
    read_units: float = 1000.0

    def left(self, consumed: Consumed) -> bool:
        """Whether there is room for more."""
        return consumed.requests < self.requests and consumed.read_units < self.read_units


@dataclass(frozen=True, slots=True)
class Page(Generic[I]):
    """One answer of a listing.

    Attributes:
        items: the items; a page may be short, or even empty, before the listing ends.
        cursor: token that continues the listing; None, and only None, says that it has ended.
        consumed: capacity used, with the number of requests.
        rounds: how many round trips followed one another.
    """

    items: list[I]
    cursor: str | None
    consumed: Consumed
    rounds: int


@dataclass(frozen=True, slots=True)
class Query:
    """A checked listing of one logical partition, or of one of an index."""

    entity: EntityDefinition[Any]
    index: IndexDefinition | None
    partition: str
    bounds: Bounds
    order: Order = Order.ROUND_ROBIN
    forward: bool = True
    limit: int = DEFAULT_LIMIT
    filters: tuple[Filter, ...] = ()
    fields: tuple[str, ...] | None = None
    consistent: bool = False
    budget: Budget = field(default_factory=Budget)

    def fingerprint(self, filters: FilterExpression) -> bytes:
        """What binds a cursor to this entity, partition and question; page size, fields and budget may change.

        `filters` are those of the query as DynamoDB takes them: equal values are written alike there.
        """
        bounds = self.bounds
        asked = [
            self.entity.name,
            self.index.name if self.index else None,
            self.partition,
            [bounds.low, bounds.high, bounds.low_open, bounds.high_open],
            self.order,
            self.forward,
            [filters.text, filters.names, filters.values],
        ]
        return blake2b(orjson.dumps(asked), digest_size=FINGERPRINT_BYTES).digest()


def query(
    entity: EntityDefinition[Any],
    partition: Mapping[str, Any],
    *,
    index: str | None = None,
    order: str = Order.ROUND_ROBIN,
    direction: str = "asc",
    limit: int = DEFAULT_LIMIT,
    prefix: str | None = None,
    start: str | None = None,
    end: str | None = None,
    filters: Sequence[Filter] = (),
    fields: Sequence[str] | None = None,
    consistent: bool = False,
    budget: Budget | None = None,
) -> Query:
    """Check what a caller asks for; the arguments are those of `Collection.list`.

    Raises:
        InvalidQueryError: with the argument at fault in `field`.
        InvalidKeyError: a partition field is missing or cannot stand in a key.
    """
    found = _index(entity, index)
    template = (found or entity).partition
    for name in partition:
        if name not in template.fields:
            raise InvalidQueryError(f"{name} is no part of the partition, {', '.join(template.fields)}", field=name)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidQueryError(f"limit is a number from 1 to {MAX_LIMIT}", field="limit")
    if order not in tuple(Order):
        raise InvalidQueryError(f"order is one of {', '.join(Order)}", field="order")
    if direction not in ("asc", "desc"):
        raise InvalidQueryError("direction is asc or desc", field="direction")
    if consistent and found is not None:
        raise InvalidQueryError("an index cannot be read consistently; list the table", field="consistent")
    for name in fields or ():
        if name not in entity.model.model_fields:
            raise InvalidQueryError(f"{entity.name} has no field {name}", field="fields")
    return Query(
        entity=entity,
        index=found,
        partition=(found or entity).logical_partition(partition),
        bounds=_bounds(prefix, start, end),
        order=Order(order),
        forward=direction == "asc",
        limit=limit,
        filters=tuple(filters),
        fields=None if fields is None else tuple(fields),
        consistent=consistent,
        budget=budget or Budget(),
    )


def _index(entity: EntityDefinition[Any], name: str | None) -> IndexDefinition | None:
    if name is None:
        return None
    if name not in entity.indexes:
        known = ", ".join(entity.indexes) or "none"
        raise InvalidQueryError(f"{entity.name} has no index {name}; it has {known}", field="index")
    return entity.indexes[name]


def _bounds(prefix: str | None, start: str | None, end: str | None) -> Bounds:
    for what, text in (("prefix", prefix), ("start", start), ("end", end)):
        if text is not None:
            utf8(text, what=what, limit=MAX_SORT_KEY_BYTES)
            if not text:
                raise InvalidQueryError(f"{what} may not be empty; leave it out", field=what)
    if prefix is not None and (start is not None or end is not None):
        raise InvalidQueryError("give a prefix or a range, not both", field="prefix")
    if start is not None and end is not None and start > end:
        raise InvalidQueryError("the range ends before it starts", field="end")
    return Bounds.of(prefix=prefix, start=start, end=end)
