"""Listing the items of a logical partition, over the table or an index, in the order asked for."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from msgspec.structs import replace

from dynashard.codec import item_size
from dynashard.entity import Entity, EntityDefinition, Undecodable, definition
from dynashard.errors import InvalidCursorError, InvalidQueryError, QueryTooWideError, ThrottledError
from dynashard.reads.allowance import UNBOUNDED, current_allowance
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.cursor import CursorCodec
from dynashard.reads.dedup import Dedup
from dynashard.reads.enumeration import Enumeration
from dynashard.reads.fences import Fences
from dynashard.reads.fetch import Fetch, States
from dynashard.reads.first_round import FIRST_GUESS
from dynashard.reads.judging import Judge
from dynashard.reads.limits import MAX_LIMIT
from dynashard.reads.ordered import list_ordered
from dynashard.reads.page import Page
from dynashard.reads.query import Order, Query
from dynashard.reads.results import Counted, Scan
from dynashard.reads.scan import scan_shards
from dynashard.reads.sources import Convert, queries_of
from dynashard.repository import Store
from dynashard.schema import PK
from dynashard.transport.interface import Wire

E = TypeVar("E", bound=Entity)

_WEIGHT: Final = 0.2
_COUNTERS: Final = 16
"""How many shards are read at a time for a count."""


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """What a shard holds: its stored partition key, how many live items, and their size in bytes."""

    partition_key: str
    items: int
    bytes: int


class Listing(Generic[E]):
    """Listings of one entity, or of several that share their logical partitions. Safe to share between threads."""

    def __init__(self, store: Store, cursors: CursorCodec, model: type[E], *others: type[E]) -> None:
        self._store = store
        self._cursors = cursors
        self._entity: EntityDefinition[E] = definition(model)
        self._decoders = {d.name: d for d in (definition(m) for m in (model, *others))}
        self._item_bytes: dict[str | None, float] = {}
        self._excess: dict[str | None, float] = {}

    def page(self, query: Query, cursor: str | None = None, *, revision_as: str | None = None) -> Page[Any]:
        """Return one page; `Collection.list` has errors and costs.

        With `revision_as`, its items are tuples of a JSON document with a revision of this name; or entities, if their
        JSON is more than that of their fields.
        Raises `QueryTooWideError` if it has more shards than the request may send Queries; none was sent.
        """
        if query.distinct is not None and len(self._decoders) > 1:
            raise InvalidQueryError("distinct lists one entity; several have no value in common", field="distinct")
        judge = self._judge(query, revision_as)
        asked = Enumeration(self._store, self._decoders, query, fits=judge.fits)
        fingerprint = query.fingerprint(asked.filters)
        positions: States = None
        dedup, fences = asked.dedup, None
        if cursor is not None:
            try:
                recent, known, *states = self._cursors.read(cursor, fingerprint)
            except InvalidCursorError:
                if query.former is None:
                    raise
                return self.page(query.former, cursor, revision_as=revision_as)
            positions = [decode_positions(*each) for each in zip(states, query.partitions, strict=True)]
            # An ordered listing is at one sort key in all partitions.
            fences = known and Fences.unpack(known, positions[0].open[0][0].sort)
            if dedup is not None:
                dedup.recent = recent
        # More items may pass a filter than the page has room for: then its last stored item is the position.
        fetch = asked.fetch(query.budget, None if query.filters else self._convert(query.fields, revision_as))
        try:
            _refuse_wide(fetch, query)
            if query.order == Order.ORDERED:
                rows, after, fences = self._ordered(fetch, query, dedup, positions, fences)
            else:
                rows, after = self._by_shard(fetch, query, positions)
        except ThrottledError as error:
            self._report(query, error)
            raise
        state = None
        if after is not None:
            known = fences and fences.pack()
            recent = {} if dedup is None else dedup.recent
            state = [recent, known, *map(encode_positions, after, query.partitions)]
        items, undecodable = judge.split(fetch.items(rows))
        return Page(
            items=items,
            cursor=None if state is None else self._cursors.issue(state, fingerprint),
            consumed=fetch.consumed,
            rounds=fetch.rounds,
            undecodable=undecodable,
            complete=asked.complete,
        )

    def pages(self, query: Query, cursor: str | None = None) -> Iterator[Page[Any]]:
        """Return all pages, from the cursor or the start on. Cost: as `page`, for each."""
        page = self.page(query, cursor)
        yield page
        while page.cursor is not None:
            yield (page := self.page(query, page.cursor))

    def scan(self, query: Query, *, workers: int) -> Scan[Any]:
        """Stream all items, read by a pool of workers; `Collection.scan` has order and costs.

        Raises:
            QueryTooWideError: there are more shards than the request may send Queries, and none was sent; or reading
                their items needs more Queries than that.
        """
        if query.distinct is not None:
            raise InvalidQueryError("a scan has no order, which distinct needs; list the items", field="distinct")

        def stream(undecodable: list[Undecodable]) -> Generator[list[Any]]:
            for items, left_out in self._scanned(query, "scan", workers):
                undecodable += left_out
                yield items

        return Scan(stream)

    def count(self, query: Query, *, up_to: int | None = None) -> Counted:
        """Count the items, or at least `up_to` of them; `Collection.count` has bounds and costs. Raises as `scan`."""
        parts: Generator[tuple[list[Any], Sequence[Undecodable]]]
        if up_to is not None and (isinstance(up_to, bool) or not isinstance(up_to, int) or up_to < 1):
            raise InvalidQueryError(f"up_to is {up_to!r}; it must be a number from 1 on", field="up_to")
        if query.distinct is not None:
            parts = ((page.items, page.undecodable) for page in self.pages(replace(query, limit=MAX_LIMIT)))
        else:
            workers = _COUNTERS if up_to is None else min(_COUNTERS, 1 + up_to // MAX_LIMIT)
            parts = self._scanned(query, "count", workers)
        total, undecodable = 0, list[Undecodable]()
        with closing(parts):
            try:
                for items, left_out in parts:
                    total += len(items)
                    undecodable += left_out
                    if up_to is not None and total > up_to:
                        return Counted(up_to, undecodable, exact=False)
            except QueryTooWideError:
                if up_to is None or not total:
                    raise
                return Counted(total, undecodable, exact=False)
        return Counted(total, undecodable)

    def _scanned(self, query: Query, verb: str, workers: int) -> Generator[tuple[list[Any], Sequence[Undecodable]]]:
        """Read all items, a Query's worth at a time, with those that are left out."""
        judge = self._judge(query)
        for each, asked in self._each(query, verb):
            fetch = partial(asked.fetch, query.budget, self._convert(query.fields))
            try:
                for rows in scan_shards(fetch, self._store.retry_policy, workers):
                    yield judge.split(rows)
            except ThrottledError as error:
                self._report(each, error)
                raise

    def _judge(self, query: Query, revision_as: str | None = None) -> Judge:
        return Judge(self._decoders, query, revision_as)

    def shards(self, query: Query, *, workers: int) -> list[ShardLoad]:
        """Return what each shard holds; see `Collection.shards`."""
        asked = Enumeration(self._store, self._decoders, query)
        keys = asked.stored_keys()
        layout = asked.as_stored(keys)
        items, sizes = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
        fetch = partial(Fetch, self._store.transport, query.budget, lambda: (layout,))
        try:
            for rows in scan_shards(fetch, self._store.retry_policy, workers):
                for row in rows:
                    items[row[PK]["S"]] += 1
                    sizes[row[PK]["S"]] += item_size(row)
        except ThrottledError as error:
            self._report(query, error)
            raise
        return [ShardLoad(key, count, sizes[key]) for key, count in items.items()]

    def _each(self, query: Query, verb: str) -> list[tuple[Query, Enumeration]]:
        """A scan or a count of each partition, refused if they have more shards than the request may send Queries."""
        found = [(each, Enumeration(self._store, self._decoders, each, in_memory=True)) for each in query.each()]
        allowance = current_allowance()
        if allowance.queries != UNBOUNDED:
            needed = sum(queries_of(layout.streams) for _, asked in found for layout in asked.layouts())
            reason = f"a {verb} reads every shard of the partition; page through it with order=round_robin"
            if query.several:
                reason = f"a {verb} of {len(found)} partitions reads all of their shards; name fewer at a time"
            allowance.demand(needed, reason, field="partition" if query.several else None)
        return found

    def _by_shard(self, fetch: Fetch, query: Query, positions: States) -> tuple[list[Any], States]:
        if positions and query.index is None and not self._entity.rule.powers_of_two:
            for at, layout in zip(positions, fetch.layouts(), strict=True):
                if at.size != len(layout.streams):
                    raise InvalidCursorError("the shard count has changed; list from the start", field="cursor")
        return list_by_shard(fetch, positions, limit=query.limit, in_turn=query.order == Order.ROUND_ROBIN)

    def _ordered(
        self, fetch: Fetch, query: Query, dedup: Dedup | None, positions: States, fences: Fences | None
    ) -> tuple[list[Wire], States, Fences | None]:
        known = self._item_bytes.get(query.slot)
        # Fields do not tell the size of their items, so it would stay unknown, and each page would take a round more.
        item_bytes = known if known is not None or query.fields is None else FIRST_GUESS
        if dedup is not None:
            dedup.excess = self._excess.get(query.slot, dedup.excess)
        rows, after, fences = list_ordered(
            fetch, positions, fences, limit=query.limit, item_bytes=item_bytes, dedup=dedup
        )
        if rows and query.fields is None:
            # Later pages only correct the size that the first one had.
            sample = rows if known is None else rows[:1]
            mean = sum(map(item_size, sample)) / len(sample)
            self._item_bytes[query.slot] = mean if known is None else known + (mean - known) * _WEIGHT
        if dedup is not None:
            self._excess[query.slot] = dedup.excess
            dedup.recent = dedup.remembered(fetch.items(rows), self._store.now())
        return rows, after, fences

    def _report(self, query: Query, error: ThrottledError) -> None:
        """Report a throttle to the store's callback, before the caller gets the error."""
        # Which of several partitions was throttled is not known.
        known = query.index is None and not query.several
        self._store.throttled(self._entity, query.partitions[0] if known else None, error)

    def _convert(self, fields: Sequence[str] | None, revision_as: str | None = None) -> Convert | None:
        """What makes entities, fields or documents of answers, so no stored items are held; None if nothing does."""
        if len(self._decoders) > 1:
            return None
        # With msgspec, which is loaded when something is read.
        from dynashard.reads.answers import documents_of, entities_of, fields_of  # noqa: PLC0415

        if fields is not None:
            return fields_of(self._entity, tuple(fields))
        return entities_of(self._entity) if revision_as is None else documents_of(self._entity, revision_as)


def _refuse_wide(fetch: Fetch, query: Query) -> None:
    """Refuse a page over more shards than the request may send Queries, before the first is sent."""
    if fetch.allowance.queries == UNBOUNDED or (query.order != Order.ORDERED and not query.several):
        return
    widths = [queries_of(layout.streams) for layout in fetch.layouts()]
    field, reason = "order", "an ordered page reads all shards of its partition; list it with order=round_robin"
    if query.several:
        fitting = max(1, fetch.allowance.queries // max(widths))
        reason = f"a page of {len(widths)} partitions reads all of their shards; name at most {fitting} at a time"
        field = "partition"
    fetch.allowance.demand(sum(widths), reason, field=field)
