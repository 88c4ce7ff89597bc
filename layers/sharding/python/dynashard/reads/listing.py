"""Listing the items of a logical partition, over the table or an index, in the order asked for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

from dynashard.codec import item_size
from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.errors import InvalidCursorError, InvalidQueryError, ThrottledError
from dynashard.reads.allowance import UNBOUNDED, current_allowance
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.counting import Counting
from dynashard.reads.cursor import CursorCodec
from dynashard.reads.dedup import Dedup
from dynashard.reads.enumeration import Enumeration
from dynashard.reads.fetch import Fetch
from dynashard.reads.ordered import (
    decode_end,
    decode_end_of_several,
    decode_recent,
    encode_end,
    encode_end_of_several,
    list_ordered,
)
from dynashard.reads.query import MAX_LIMIT, Order, Page, Query
from dynashard.reads.scan import scan_shards
from dynashard.reads.sources import queries_of
from dynashard.repository import Store
from dynashard.routing import rule_of
from dynashard.schema import PK, TYPE
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
        self._excess: dict[str | None, float] = {}

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration of the (first) entity."""
        return self._entity

    def page(self, query: Query, cursor: str | None = None) -> Page[Any]:
        """One page: entities, or mappings if the query asks for some fields only.

        Raises:
            InvalidCursorError: the cursor is damaged, forged, or belongs to another query.
            QueryTooWideError: it has more shards than the request may send Queries; none was sent.

        Cost: see `reads.by_shard` and `reads.ordered`.
        """
        if query.distinct is not None and len(self._decoders) > 1:
            raise InvalidQueryError("distinct lists one entity; several have no value in common", field="distinct")
        asked = self._enumeration(query)
        fingerprint = query.fingerprint(asked.filters)
        state = None if cursor is None else self._cursors.read(cursor, fingerprint)
        fetch = asked.fetch(query.budget)
        with self._reporting_throttles(query):
            _refuse_wide(fetch, query)
            if query.order == Order.ORDERED:
                rows, state = self._ordered(fetch, query, state, asked.dedup)
            else:
                rows, state = self._by_shard(fetch, query, state)
        return Page(
            items=[self._decode(fetch.item(row), query.fields) for row in rows],
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
        """All items, in no order between shards, read by a pool of workers and streamed. Partitions follow one another.

        Raises:
            QueryTooWideError: there are more shards than the request may send Queries, and none was sent; or reading
                their items needs more Queries than that.

        Cost: a Query for every 1,000 items or 1 MB of a shard; memory for two of them a worker.
        """
        if query.distinct is not None:
            raise InvalidQueryError("a scan goes by no order, so nothing is distinct: list", field="distinct")
        each_asked = [self._enumeration(each, in_memory=True) for each in query.each()]
        _refuse_long(each_asked, query, "scan")
        for each, asked in zip(query.each(), each_asked, strict=True):
            with self._reporting_throttles(each):
                for rows in scan_shards(partial(asked.fetch, query.budget), self._store.retry_policy, workers):
                    for row in rows:
                        yield self._decode(row, query.fields)

    def count(self, query: Query) -> int:
        """How many items there are. Cost: what reading them costs; see `reads.counting`.

        Raises:
            QueryTooWideError: as `scan`.
        """
        if query.distinct is not None:
            return sum(len(page.items) for page in self.pages(replace(query, limit=MAX_LIMIT, fields=())))
        total = 0
        each_asked = [self._enumeration(each, in_memory=True) for each in query.each()]
        _refuse_long(each_asked, query, "count")
        for each, asked in zip(query.each(), each_asked, strict=True):
            with self._reporting_throttles(each):
                total += Counting(asked.fetch(query.budget), asked.visible_only).count(query.bounds)
        return total

    def shards(self, query: Query, *, workers: int) -> list[ShardLoad]:
        """What each shard holds, in order. While items move, the shards of both counts, with what lies in them now.

        Cost: what reading all of it costs.
        """
        asked = self._enumeration(query)
        shards = asked.stored()
        layout = asked.as_stored(shards)
        items = dict.fromkeys((shard.partition for shard in shards), 0)
        sizes = dict(items)
        with self._reporting_throttles(query):
            fetch = partial(Fetch, self._store.transport, query.budget, lambda: (layout,))
            for rows in scan_shards(fetch, self._store.retry_policy, workers):
                for row in rows:
                    items[row[PK]["S"]] += 1
                    sizes[row[PK]["S"]] += item_size(row)
        return [ShardLoad(key, count, sizes[key]) for key, count in items.items()]

    def _enumeration(self, query: Query, *, in_memory: bool = False) -> Enumeration:
        return Enumeration(self._store, self._decoders, query, in_memory=in_memory)

    def _by_shard(self, fetch: Fetch, query: Query, state: Any) -> tuple[list[Wire], list[Any] | None]:
        positions = None
        if state is not None:
            states = state if query.several else [state]
            positions = [decode_positions(*each) for each in zip(states, query.partitions, strict=True)]
        bound = query.index is None and not rule_of(self._entity).powers_of_two
        if positions and bound:
            for at, layout in zip(positions, fetch.layouts(), strict=True):
                if len(at.at) != len(layout.streams):
                    raise InvalidCursorError("the shard count has changed; list from the start", field="cursor")
        in_turn = query.order == Order.ROUND_ROBIN
        rows, after = list_by_shard(fetch, positions, limit=query.limit, in_turn=in_turn)
        if after is None or not query.several:
            return rows, None if after is None else encode_positions(after[0], query.partitions[0])
        return rows, [encode_positions(at, partition) for at, partition in zip(after, query.partitions, strict=True)]

    def _ordered(
        self, fetch: Fetch, query: Query, state: Any, dedup: Dedup | None
    ) -> tuple[list[Wire], list[Any] | None]:
        slot = query.slot
        known = self._item_bytes.get(slot, _FIRST_GUESS)
        if dedup is None and not query.several:
            end = None if state is None else decode_end(state, query.partitions[0])
            rows, after = list_ordered(fetch, end, limit=query.limit, item_bytes=known)
        else:
            end = None if state is None else decode_end_of_several(state, query.partitions)
            if dedup is not None:
                dedup.excess = self._excess.get(slot, dedup.excess)
                dedup.recent = {} if state is None else decode_recent(state)
            rows, after = list_ordered(fetch, end, limit=query.limit, item_bytes=known, dedup=dedup)
        if rows and query.fields is None:
            self._item_bytes[slot] = known + (item_size(rows[0]) - known) * _WEIGHT
        if dedup is not None:
            self._excess[slot] = dedup.excess
        if after is None:
            return rows, None
        if dedup is None and not query.several:
            return rows, encode_end(after, query.partitions[0])
        recent = {} if dedup is None else dedup.remembered([fetch.item(row) for row in rows], self._store.now())
        return rows, encode_end_of_several(after, query.partitions, recent)

    @contextmanager
    def _reporting_throttles(self, query: Query) -> Iterator[None]:
        """Has whoever wants to know of throttles told of one before the caller is."""
        try:
            yield
        except ThrottledError as error:
            # Which of several partitions it was is not known.
            known = query.index is None and not query.several
            self._store.throttled(self._entity, query.partitions[0] if known else None, error)
            raise

    def _decode(self, row: Mapping[str, Any], fields: Sequence[str] | None) -> Any:
        name = row[TYPE]["S"] if TYPE in row else self._entity.name
        entity = self._decoders[name]
        return entity.decode(row) if fields is None else entity.decode_fields(row, fields)


def _refuse_wide(fetch: Fetch, query: Query) -> None:
    """Refuse a page over more shards than the request may send Queries, before the first is sent."""
    if fetch.allowance.queries == UNBOUNDED or (query.order != Order.ORDERED and not query.several):
        return
    widths = [queries_of(layout.streams) for layout in fetch.layouts()]
    if query.several:
        fitting = max(1, fetch.allowance.queries // max(widths))
        reason = f"a page of {len(widths)} partitions reads all of their shards; name at most {fitting} at a time"
        fetch.allowance.demand(sum(widths), reason, field="partition")
    else:
        reason = "an ordered page reads all shards of its partition; list it with order=round_robin"
        fetch.allowance.demand(sum(widths), reason, field="order")


def _refuse_long(each_asked: Sequence[Enumeration], query: Query, verb: str) -> None:
    """Refuse a scan or a count of more shards than the request may send Queries, before the first is sent."""
    allowance = current_allowance()
    if allowance.queries == UNBOUNDED:
        return
    needed = sum(queries_of(layout.streams) for asked in each_asked for layout in asked.layouts())
    reason = f"a {verb} of {len(each_asked)} partitions reads all of their shards; name fewer at a time"
    if len(each_asked) == 1:
        reason = f"a {verb} reads every shard of the partition; page through it with order=round_robin"
    allowance.demand(needed, reason, field="partition" if query.several else None)
