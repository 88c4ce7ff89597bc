"""Listing the items of a logical partition, over the table or an index, in the order asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from dynashard.codec import item_size
from dynashard.entity import Entity, EntityDefinition, ItemKey, definition
from dynashard.errors import InvalidCursorError
from dynashard.placement import CALCULATED
from dynashard.reads.by_shard import list_by_shard, positions_of, state_of
from dynashard.reads.cursor import CursorCodec
from dynashard.reads.fetch import Fetch
from dynashard.reads.filters import FilterExpression, filter_expression
from dynashard.reads.ordered import Mark, list_ordered
from dynashard.reads.query import Order, Page, Query
from dynashard.reads.scan import Scan
from dynashard.reads.sources import Reading, Source, slot_of
from dynashard.repository import Store
from dynashard.repository.conditions import is_live
from dynashard.routing import hash_of, logical_partition_of, rule_of, shard_keys
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE, index_sk
from dynashard.transport.interface import Wire

E = TypeVar("E", bound=Entity)

_FIRST_GUESS: Final = 1024.0
"""What an item is taken to measure, in bytes, until some were read."""
_WEIGHT: Final = 0.2


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """What a shard holds: its stored partition key, how many live items, and their size in bytes."""

    partition_key: str
    items: int
    bytes: int


class Listing(Generic[E]):
    """Listings of the items of one entity, or of several that share their logical partitions.

    Safe to share between threads.
    """

    def __init__(self, store: Store, cursors: CursorCodec, model: type[E], *others: type[E]) -> None:
        self._store = store
        self._cursors = cursors
        self._entity: EntityDefinition[E] = definition(model)
        self._decoders = {d.name: d for d in (definition(m) for m in (model, *others))}
        self._item_bytes: dict[str | None, float] = {}

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration of the (first) entity."""
        return self._entity

    def page(self, query: Query, cursor: str | None = None) -> Page[Any]:
        """One page: entities, or mappings if the query asks for some fields only.

        Raises:
            InvalidCursorError: the cursor is damaged, forged, or belongs to another query.

        Cost: see `reads.by_shard` and `reads.ordered`.
        """
        sources, reading = self._sources(query), self._reading(query)
        fingerprint = query.fingerprint(reading.filters)
        state = None if cursor is None else self._cursors.read(cursor, fingerprint)
        fetch = Fetch(self._store.transport, reading, query.budget)
        if query.order is Order.ORDERED:
            rows, state = self._ordered(fetch, sources, query, state)
        else:
            rows, state = self._by_shard(fetch, sources, query, state)
        return Page(
            items=[self._decode(row, query.fields) for row in rows],
            cursor=None if state is None else self._cursors.issue(state, fingerprint),
            consumed=fetch.consumed,
            rounds=fetch.rounds,
        )

    def pages(self, query: Query, cursor: str | None = None) -> Iterator[Page[Any]]:
        """All pages, from the cursor or the start on. Cost: as `page`, for each."""
        while True:
            page = self.page(query, cursor)
            yield page
            cursor = page.cursor
            if cursor is None:
                return

    def scan(self, query: Query, *, workers: int) -> Iterator[Any]:
        """All items, in no order between shards, read by a pool of workers and streamed.

        Cost: a Query for every 1,000 items or 1 MB of a shard; memory for two of them a worker.
        """
        for rows in self._scan(query).rows(workers):
            for row in rows:
                yield self._decode(row, query.fields)

    def count(self, query: Query) -> int:
        """How many items there are. Cost: what reading them costs."""
        return self._scan(query, hidden=self._hidden()).count()

    def shards(self, query: Query, *, workers: int) -> list[ShardLoad]:
        """What each shard holds, in order. Cost: what reading all of it costs."""
        items = dict.fromkeys((source.partition for source in self._sources(query)), 0)
        sizes = dict(items)
        for rows in self._scan(query).rows(workers):
            for row in rows:
                items[row[PK]["S"]] += 1
                sizes[row[PK]["S"]] += item_size(row)
        return [ShardLoad(key, count, sizes[key]) for key, count in items.items()]

    def _scan(self, query: Query, hidden: FilterExpression | None = None) -> Scan:
        store = self._store
        return Scan(store.transport, self._reading(query, hidden), self._sources(query), store.patience)

    def _by_shard(
        self, fetch: Fetch, sources: Sequence[Source], query: Query, state: Any
    ) -> tuple[list[Wire], list[Any] | None]:
        positions = None if state is None else positions_of(state)
        if positions and len(positions.at) != len(sources) and not rule_of(self._entity).powers_of_two:
            raise InvalidCursorError("the shard count has changed; list from the start", field="cursor")
        rows, after = list_by_shard(
            fetch,
            sources,
            positions,
            limit=query.limit,
            in_turn=query.order is Order.ROUND_ROBIN,
            hash_of=self._hash_of(query),
        )
        return rows, None if after is None else state_of(after)

    def _ordered(
        self, fetch: Fetch, sources: Sequence[Source], query: Query, state: Any
    ) -> tuple[list[Wire], list[Any] | None]:
        mark: Mark | None = None if state is None else (state[0], tuple(state[1:]))
        slot = slot_of(query.index)
        known = self._item_bytes.get(slot, _FIRST_GUESS)
        rows, after = list_ordered(fetch, sources, mark, limit=query.limit, item_bytes=known)
        if rows and query.fields is None:
            self._item_bytes[slot] = known + (item_size(rows[0]) - known) * _WEIGHT
        return rows, None if after is None else [after[0], *after[1]]

    def _sources(self, query: Query) -> list[Source]:
        router, entity, index = self._store.router, self._entity, query.index
        if index is None:
            count = router.view(entity, query.partition).count
            keys = shard_keys(rule_of(entity), query.partition, entity.separator, count)
        else:
            count = router.index_view(entity, index).count
            keys = shard_keys(CALCULATED, query.partition, index.separator, count)
        return [Source(number, key, slot_of(index)) for number, key in enumerate(keys)]

    def _reading(self, query: Query, hidden: FilterExpression | None = None) -> Reading:
        asked = filter_expression(self._entity, query.filters)
        now, decoders = self._store.now(), self._decoders

        def visible(row: Wire) -> bool:
            return is_live(row, now) and (TYPE not in row or row[TYPE]["S"] in decoders)

        return Reading(
            table=self._store.table,
            slot=slot_of(query.index),
            bounds=query.bounds,
            forward=query.forward,
            visible=visible,
            filters=asked if hidden is None else asked & hidden,
            fields=query.fields and self._entity.attributes_of(query.fields),
            consistent=query.consistent,
        )

    def _hidden(self) -> FilterExpression:
        """What readers must not see, where DynamoDB counts and they do not see the items."""
        types = {f":type{i}": {"S": name} for i, name in enumerate(self._decoders)}
        return FilterExpression(
            f"attribute_not_exists({MOVED_TO}) AND "
            f"(attribute_not_exists({EXPIRES_AT}) OR {EXPIRES_AT} > :now) AND "
            f"(attribute_not_exists(#type) OR #type IN ({', '.join(types)}))",
            {"#type": TYPE},
            {":now": {"N": str(self._store.now())}, **types},
        )

    def _hash_of(self, query: Query) -> Callable[[Wire], int]:
        entity, index = self._entity, query.index
        if index is None:
            rule = rule_of(entity)
            return lambda row: hash_of(rule, ItemKey(query.partition, row[SK]["S"]))
        if index.by_item_key:
            return lambda row: hash_of(CALCULATED, ItemKey(logical_partition_of(entity, row[PK]["S"]), row[SK]["S"]))
        attribute = index_sk(index.slot)
        return lambda row: hash_of(CALCULATED, ItemKey(query.partition, row[attribute]["S"]))

    def _decode(self, row: Mapping[str, Any], fields: tuple[str, ...] | None) -> Any:
        name = row[TYPE]["S"] if TYPE in row else self._entity.name
        entity = self._decoders[name]
        return entity.decode(row) if fields is None else entity.decode_fields(row, fields)
