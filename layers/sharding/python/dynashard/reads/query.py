"""The query of a listing, checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, TypedDict

import orjson
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from dynashard.arguments import check_flag
from dynashard.cures import hint
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import InvalidQueryError
from dynashard.keys import storable_key
from dynashard.reads.bounds import Bounds
from dynashard.reads.cursor import FINGERPRINT_BYTES
from dynashard.reads.filters import FilterExpression, Filters, filters_of
from dynashard.reads.limits import DEFAULT_LIMIT, MAX_LIMIT, MAX_PARTITIONS
from dynashard.repository.projection import check_projected
from dynashard.schema import MAX_SORT_KEY_BYTES
from dynashard.transport.interface import Consumed

Partitions = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""The fields of a logical partition, or those of several."""
_DIRECTIONS: Final = ("asc", "desc")


class Order(StrEnum):
    """In which order a listing returns items."""

    ROUND_ROBIN = "round_robin"
    """A page from one shard, the next page from the next shard: cheapest, and fair to all shards."""
    ORDERED = "ordered"
    """By sort key over all shards."""
    SHARD = "shard"
    """Shard 0 to its end, then shard 1, and so on."""


_ORDERS: Final = frozenset(Order)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work one call may do before it returns a short page: Query requests, and read capacity units."""

    requests: int = 2000
    read_units: float = 1000.0

    def left(self, consumed: Consumed) -> bool:
        """Whether another request may be sent."""
        return consumed.requests < self.requests and consumed.read_units < self.read_units


class Query(Struct, frozen=True, dict=True):
    """A checked listing of a logical partition, or of several. `Collection.list` and its siblings take these arguments.

    Attributes:
        entity: the compiled declaration of the listed entity.
        partition: the fields of the logical partition, those of the index if one is named; or a sequence of such, at
            most 100, which are listed as one.
        index: the index to list; the table if None.
        order: `round_robin` (cheapest), `ordered` (by sort key over all shards) or `shard` (shard by shard).
        direction: `asc` or `desc`, within each shard or over all.
        limit: items a page, 1 to 1000.
        prefix: only sort keys that begin with this text. Not together with `start` or `end`.
        start: only sort keys from this one on.
        end: only sort keys before this one.
        filters: conditions on fields, all of which must hold: by field, a value or operators, as in `{"department":
            "legal", "created_at": {"gte": since}}`; or a sequence of `Filter`, also as tuples. They save answers, not
            read units; `Collection.list` makes ranges of those on the first sort field. They are kept as `Filter`.
        fields: return these fields only, as mappings instead of entities. Saves answers, not read units.
        consistent: see every write acknowledged before. Not for indexes.
        budget: bound on the work of one call; when it is used up, the page is short.
        distinct: a field of the sort key; of the items with one value of it, only the first in order is returned. For
            ordered listings of items with copies, see docs/listing.md.
        strict: raise `UndecodableItemError` instead of leaving out a stored item that does not fit its entity.
        former: the same query as earlier releases wrote it, whose cursors are accepted.

    Raises:
        InvalidQueryError: with the argument at fault in `field`.
        InvalidKeyError: a partition field is missing, or a value cannot be part of a key.
    """

    entity: EntityDefinition[Any]
    partition: Partitions
    index: str | None = None
    order: str = Order.ROUND_ROBIN
    direction: str = "asc"
    limit: int = DEFAULT_LIMIT
    prefix: str | None = None
    start: str | None = None
    end: str | None = None
    filters: Filters = ()
    fields: Sequence[str] | None = None
    consistent: bool = False
    budget: Budget = Budget()
    distinct: str | None = None
    strict: bool = False
    former: "Query | None" = None

    def __post_init__(self) -> None:
        # What is not a partition is refused first. It is kept here because a cached property takes a lock.
        named = _named(self)
        vars(self).update(_named=named, partitions=tuple(named))
        force_setattr(self, "filters", filters_of(self.filters))
        if self.fields is not None:
            force_setattr(self, "fields", _names(self.fields))
        check_flag("consistent", self.consistent)
        check_flag("strict", self.strict)
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or not 1 <= self.limit <= MAX_LIMIT:
            message = f"limit is {self.limit!r}; it must be a number from 1 to {MAX_LIMIT}"
            raise InvalidQueryError(message, field="limit")
        if not isinstance(self.order, str) or self.order not in _ORDERS:
            turned = '; write direction="asc" or "desc"' if self.order in _DIRECTIONS else ""
            message = f"order is {self.order!r}; it must be one of {', '.join(Order)}{turned}"
            raise InvalidQueryError(message, field="order")
        if self.direction not in _DIRECTIONS:
            raise InvalidQueryError(f"direction is {self.direction!r}; it must be asc or desc", field="direction")
        if not isinstance(self.budget, Budget):
            message = f"budget is {self.budget!r}; write Budget(requests=..., read_units=...)"
            raise InvalidQueryError(message, field="budget")
        if self.consistent and self.index is not None:
            raise InvalidQueryError("an index cannot be read consistently; list the table", field="consistent")
        check_projected(self.entity, () if self.fields is None else tuple(self.fields))
        _check_range(self.prefix, self.start, self.end)
        vars(self)["bounds"] = Bounds.of(prefix=self.prefix, start=self.start, end=self.end)
        if self.distinct is not None:
            _check_distinct(self.index_definition or self.entity, self.distinct, self.order)

    @property
    def index_definition(self) -> IndexDefinition | None:
        """The index that is listed; None for the table."""
        return None if self.index is None else self.entity.indexes[self.index]

    @property
    def slot(self) -> str | None:
        """The slot of the index, such as `GSI1`; None for the table."""
        return None if self.index is None else self.entity.indexes[self.index].slot

    @cached_property
    def _named(self) -> Mapping[str, Mapping[str, Any]]:
        """The fields of each logical partition, by its stored name."""
        return _named(self)

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        """The logical partitions, sorted, so that a cursor is valid in whatever order they are named."""
        return tuple(self._named)

    @property
    def several(self) -> bool:
        """Whether more than one logical partition is listed."""
        return len(self._named) > 1

    @cached_property
    def bounds(self) -> Bounds:
        """The range of sort keys."""
        return Bounds.of(prefix=self.prefix, start=self.start, end=self.end)

    @property
    def forward(self) -> bool:
        """Whether sort keys ascend."""
        return self.direction == "asc"

    def each(self) -> "list[Query]":
        """Return the same query of each logical partition by itself."""
        return [replace(self, partition=fields, distinct=None) for fields in self._named.values()]

    def fingerprint(self, filters: FilterExpression) -> bytes:
        """Return what binds a cursor to this query; page size, fields, budget, consistency and strictness may change.

        `filters` are those of the query as DynamoDB takes them: equal values are written alike there.
        """
        bounds = self.bounds
        bound: list[Any] = [
            self.entity.name,
            self.index,
            self.partitions[0],
            [bounds.low, bounds.high, bounds.low_open, bounds.high_open],
            self.order,
            self.forward,
            [filters.text, filters.names, filters.values],
        ]
        if self.several or self.distinct:
            bound += [self.partitions if self.several else (), self.distinct]
        return blake2b(orjson.dumps(bound), digest_size=FINGERPRINT_BYTES).digest()


class QueryArguments(TypedDict, total=False):
    """The arguments of `Query` after the partition, for functions that pass them on."""

    index: str | None
    order: str
    direction: str
    limit: int
    prefix: str | None
    start: str | None
    end: str | None
    filters: Filters
    fields: Sequence[str] | None
    consistent: bool
    budget: Budget
    distinct: str | None
    strict: bool


def _names(given: Any) -> tuple[str, ...]:
    """Return the names of chosen fields as a tuple; refuse what is none."""
    if given.__class__ is not tuple:
        if isinstance(given, str):
            raise InvalidQueryError(f"fields is {given!r}; write a list, [{given!r}]", field="fields")
        if not isinstance(given, Iterable):
            raise InvalidQueryError(f"fields is {given!r}; write a list of names", field="fields")
    return tuple(given)


def _named(query: Query) -> dict[str, Mapping[str, Any]]:
    """The fields of each logical partition, each once, by name."""
    listed = _listed(query.entity, query.index)
    given = query.partition
    asked = [given] if given.__class__ is dict or isinstance(given, Mapping) else list(given)
    if not 1 <= len(asked) <= MAX_PARTITIONS:
        message = f"{len(asked)} partitions are named; one call lists 1 to {MAX_PARTITIONS}"
        raise InvalidQueryError(message, field="partition")
    known = listed.partition.fields
    for fields in asked:
        for name in fields:
            if name not in known:
                message = f"{name} is not a field of the partition, {', '.join(known)}{hint(name, known)}"
                raise InvalidQueryError(message, field=name)
    found = {listed.logical_partition(fields): fields for fields in asked}
    return found if len(found) == 1 else dict(sorted(found.items()))


def _listed(entity: EntityDefinition[Any], index: str | None) -> EntityDefinition[Any] | IndexDefinition:
    if index is None:
        return entity
    if index not in entity.indexes or entity.indexes[index].replica:
        known = ", ".join(name for name, each in entity.indexes.items() if not each.replica) or "none"
        message = f"{entity.name} has no index {index}; it has {known}{hint(index, entity.indexes)}"
        raise InvalidQueryError(message, field="index")
    return entity.indexes[index]


def _check_distinct(listed: EntityDefinition[Any] | IndexDefinition, distinct: str, order: str) -> None:
    if distinct not in listed.sort.fields:
        known = ", ".join(listed.sort.fields) or "constant"
        raise InvalidQueryError(
            f"distinct is {distinct}; it must be a field of the listed sort key, which is {known}, so that copies with "
            "equal sort keys are neighbours",
            field="distinct",
        )
    if order != Order.ORDERED:
        raise InvalidQueryError("distinct needs order='ordered'", field="distinct")


def _check_range(prefix: str | None, start: str | None, end: str | None) -> None:
    for what, text in (("prefix", prefix), ("start", start), ("end", end)):
        if text is not None:
            if not isinstance(text, str):
                raise InvalidQueryError(f"{what} is {text!r}; it must be a text, as sort keys are", field=what)
            storable_key(text, what, MAX_SORT_KEY_BYTES)
            if not text:
                raise InvalidQueryError(f"{what} is empty; leave it out", field=what)
    if prefix is not None and (start is not None or end is not None):
        raise InvalidQueryError("give a prefix or a range, not both", field="prefix")
    if start is not None and end is not None and start > end:
        raise InvalidQueryError("the range ends before it starts", field="end")
