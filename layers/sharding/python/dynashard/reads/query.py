"""What a caller asks of a listing, checked, and the page that answers it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
MAX_PARTITIONS: Final = 100
"""Logical partitions of one listing."""

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
    """A checked listing of a logical partition, or of one of an index, or of several of them.

    `partitions` are all of them, sorted, where they are several, and `partition` is the first.
    """

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
    partitions: tuple[str, ...] = ()
    distinct: str | None = None

    @property
    def several(self) -> tuple[str, ...]:
        """All logical partitions."""
        return self.partitions or (self.partition,)

    def each(self) -> "list[Query]":
        """The same question to each logical partition by itself."""
        return [replace(self, partition=partition, partitions=(), distinct=None) for partition in self.several]

    def fingerprint(self, filters: FilterExpression) -> bytes:
        """What binds a cursor to this entity, partition and question; page size, fields and budget may change.

        `filters` are those of the query as DynamoDB takes them: equal values are written alike there.
        """
        bounds = self.bounds
        asked: list[Any] = [
            self.entity.name,
            self.index.name if self.index else None,
            self.partition,
            [bounds.low, bounds.high, bounds.low_open, bounds.high_open],
            self.order,
            self.forward,
            [filters.text, filters.names, filters.values],
        ]
        if self.partitions or self.distinct:
            asked += [self.partitions, self.distinct]
        return blake2b(orjson.dumps(asked), digest_size=FINGERPRINT_BYTES).digest()


def query(
    entity: EntityDefinition[Any],
    partition: Mapping[str, Any] | Sequence[Mapping[str, Any]],
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
    distinct: str | None = None,
) -> Query:
    """Check what a caller asks for; the arguments are those of `Collection.list`.

    Raises:
        InvalidQueryError: with the argument at fault in `field`.
        InvalidKeyError: a partition field is missing or cannot stand in a key.
    """
    found = _index(entity, index)
    partitions = _partitions(found or entity, partition)
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
        if name in entity.attachments:
            raise InvalidQueryError(
                f"{name} is an attachment: no listing has it; get single items with it", field="fields"
            )
    if distinct is not None:
        _check_distinct(found or entity, distinct, order)
    return Query(
        entity=entity,
        index=found,
        partition=partitions[0],
        bounds=_bounds(prefix, start, end),
        order=Order(order),
        forward=direction == "asc",
        limit=limit,
        filters=tuple(filters),
        fields=None if fields is None else tuple(fields),
        consistent=consistent,
        budget=budget or Budget(),
        partitions=partitions if len(partitions) > 1 else (),
        distinct=distinct,
    )


def _partitions(
    listed: EntityDefinition[Any] | IndexDefinition, asked: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """The logical partitions, each once, sorted: a cursor holds whatever order they are named in."""
    wanted = [asked] if isinstance(asked, Mapping) else list(asked)
    if not 1 <= len(wanted) <= MAX_PARTITIONS:
        raise InvalidQueryError(f"one call lists 1 to {MAX_PARTITIONS} partitions", field="partition")
    known = listed.partition.fields
    for name in (name for fields in wanted for name in fields if name not in known):
        raise InvalidQueryError(f"{name} is no part of the partition, {', '.join(known)}", field=name)
    return tuple(sorted({listed.logical_partition(fields) for fields in wanted}))


def _check_distinct(listed: EntityDefinition[Any] | IndexDefinition, distinct: str, order: str) -> None:
    if distinct not in listed.sort.fields:
        known = ", ".join(listed.sort.fields) or "constant"
        raise InvalidQueryError(
            f"distinct takes a field of the sort key that is listed by, which is {known}: copies with one sort key are "
            "neighbours, and a cursor need not remember all others",
            field="distinct",
        )
    if order != Order.ORDERED:
        raise InvalidQueryError("distinct goes by order: list with order='ordered'", field="distinct")


def _index(entity: EntityDefinition[Any], name: str | None) -> IndexDefinition | None:
    if name is None:
        return None
    if name not in entity.indexes or entity.indexes[name].replica:
        known = ", ".join(name for name, index in entity.indexes.items() if not index.replica) or "none"
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
