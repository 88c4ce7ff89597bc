"""The requests of listings on the local engine, which are the same in every run: Queries, rounds, units, cursors."""

import statistics
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import zip_longest
from random import Random
from time import time
from typing import Any, Final
from uuid import UUID

from ksuid import Ksuid

from dynashard import Collection, Dynashard, Entity, Key, Page, Registry, Shards
from dynashard.runtime import Runtime
from dynashard.transport import Call, Transport, metered
from dynashard_lab.bench.clients.layer import CURSOR_KEYS
from dynashard_lab.bench.measure import Fact
from dynashard_lab.bench.rows.rest import over_rest
from dynashard_lab.bench.stored import TABLE
from dynashard_lab.bench.world import World

LARGE: Final = "large"
"""A tenant whose items are 1 KB each, with ids that rise with time."""
RANDOM: Final = "random"
"""A tenant with the same items under random ids."""
ITEMS: Final = 3200
ITEMS_OF_A_SHARD: Final = 50
"""The least: with fewer, the end of a listing, where shards end, would be most of it."""
PAGE: Final = 50
ORDERED_UNITS: Final = {16: 17.0, 64: 21.0, 256: 29.0}
"""The highest average after the first page."""
RANDOM_UNITS: Final = 30.0
"""As `ORDERED_UNITS`, of 256 shards with random ids."""
READING_SECONDS: Final = 20
SLOW_UNITS: Final = 40
LAST_PAGES: Final = 4
WIDEST: Final = 1024
WIDE_ITEMS: Final = 4096
WIDE_PAGE: Final = 10
ORDERED_CURSOR: Final = 600
ROUND_ROBIN_CURSOR: Final = 2048
_START: Final = datetime(2026, 11, 1, tzinfo=UTC)


def wide(shards: int) -> Any:
    """Return an entity with so many shards and items of 1 KB."""

    class Wide(
        Entity,
        name=f"wide{shards}.v1.Wide",
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(shards),
        registry=Registry(),
    ):
        """A record of a kilobyte."""

        tenant_id: str
        id: str
        text: str

    return Wide


@cache
def ksuids(count: int) -> list[str]:
    """Return identifiers as the layer makes them, a second apart: the same in every run."""
    draw = Random(1)
    return [str(Ksuid(_START + timedelta(seconds=second), draw.randbytes(16))) for second in range(count)]


@cache
def uuids(count: int) -> list[str]:
    """Return identifiers without any order, the same in every run."""
    draw = Random(2)
    return [str(UUID(bytes=draw.randbytes(16), version=4)) for _ in range(count)]


def rows(world: World) -> Iterator[Fact]:
    """Yield the requests of round-robin and ordered pages, and of the published high-watermark method."""
    transport = world.transport()
    db = world.db(transport)
    for shards in ORDERED_UNITS:
        count = max(ITEMS, ITEMS_OF_A_SHARD * shards)
        records = _loaded(db, shards, count)
        yield from _round_robin(records, shards, count)
        yield from _ordered(records, f"ordered, {shards} shards", LARGE, ksuids(count), ORDERED_UNITS[shards])
        if shards == max(ORDERED_UNITS):
            yield from _slowly(db, shards)
            records = _loaded(db, shards, count, RANDOM, uuids)
            yield from _ordered(records, f"ordered, {shards} shards, random ids", RANDOM, uuids(count), RANDOM_UNITS)
    yield _high_watermark(transport, 16)
    yield from _widest(_loaded(db, WIDEST, WIDE_ITEMS))
    transport.close()
    for shards in (64, 256, WIDEST):
        yield from over_rest(world, shards, ksuids(ITEMS))


def _loaded(
    db: Dynashard, shards: int, count: int, tenant: str = LARGE, ids: Callable[[int], list[str]] = ksuids
) -> Collection[Any]:
    model = wide(shards)
    records = db.collection(model)
    text = "x" * 860
    records.batch_write(put=[model(tenant_id=tenant, id=each, text=text) for each in ids(count)])
    return records


def _round_robin(records: Collection[Any], shards: int, count: int) -> Iterator[Fact]:
    subject = f"round-robin, {shards} shards"
    with metered() as first:
        records.list({"tenant_id": LARGE}, limit=PAGE)
    fills_pages = count // shards > 2 * PAGE
    yield Fact(subject, f"Queries for a first page of {PAGE}", first.queries, "Queries", 1 if fills_pages else None)
    pages = list(records.pages({"tenant_id": LARGE}, limit=PAGE))
    seen = [item.id for page in pages for item in page.items]
    yield from _means(subject, pages)
    yield Fact(subject, f"items of {count} missed or repeated", _wrong(seen, count), "items", 0)
    yield _cursor(subject, pages, ROUND_ROBIN_CURSOR)


def _widest(records: Collection[Any]) -> Iterator[Fact]:
    subject = f"round-robin, {WIDEST} shards"
    pages = list(records.pages({"tenant_id": LARGE}, limit=WIDE_PAGE))
    seen = [item.id for page in pages for item in page.items]
    yield Fact(subject, f"items of {WIDE_ITEMS} missed or repeated", _wrong(seen, WIDE_ITEMS), "items", 0)
    yield _cursor(subject, pages, ROUND_ROBIN_CURSOR)


def _ordered(records: Collection[Any], subject: str, tenant: str, ids: list[str], units: float) -> Iterator[Fact]:
    pages = list(records.pages({"tenant_id": tenant}, order="ordered", limit=PAGE))
    keys = [item.id for page in pages for item in page.items]
    yield Fact(subject, "rounds a page, at most", max(page.rounds for page in pages), "rounds", 2)
    yield Fact(subject, "read units of the first page", pages[0].consumed.read_units, "units")
    yield from _means(subject, pages[1:], units)
    # A listing that ends early has fewer keys than there are items.
    wrong = sum(got != wanted for got, wanted in zip_longest(keys, sorted(ids)))
    yield Fact(subject, "items out of order or missed", wrong, "items", 0)
    # A cursor names ids, and these are longer.
    yield _cursor(subject, pages, ORDERED_CURSOR if tenant == LARGE else None)


def _slowly(db: Dynashard, shards: int) -> Iterator[Fact]:
    """Measure the pages of a person who reads for a while between them."""
    now, store = [time()], db.store
    slow = Dynashard(
        store.transport,
        table=store.table,
        cursor_keys=CURSOR_KEYS,
        topology=store.router.topology,
        runtime=Runtime(lambda: now[0]),
    )
    # One class, as programs have it: what a collection learned about its items belongs to it.
    records, units, cursor = slow.collection(wide(shards)), list[float](), None
    while cursor is not None or not units:
        page = records.list({"tenant_id": LARGE}, order="ordered", limit=PAGE, cursor=cursor)
        units.append(page.consumed.read_units)
        cursor = page.cursor
        now[0] += READING_SECONDS
    subject, what = f"ordered, {shards} shards", f"read units a page of {PAGE}, {READING_SECONDS} seconds between pages"
    # The first page learns the fences, and the last ones have few items left.
    middle = units[1:-LAST_PAGES]
    yield Fact(subject, f"{what}, on average", round(statistics.mean(middle), 2), "units")
    yield Fact(subject, f"{what}, at most", max(middle), "units", SLOW_UNITS)


def _means(subject: str, pages: list[Page[Any]], limit: float | None = None) -> Iterator[Fact]:
    requests = statistics.mean(page.consumed.requests for page in pages)
    units = statistics.mean(page.consumed.read_units for page in pages)
    yield Fact(subject, f"Queries a page of {PAGE}, on average", round(requests, 2), "Queries")
    yield Fact(subject, f"read units a page of {PAGE}, on average", round(units, 2), "units", limit)


def _cursor(subject: str, pages: list[Page[Any]], limit: int | None) -> Fact:
    longest = max(len(page.cursor) for page in pages if page.cursor)
    return Fact(subject, "bytes of a cursor, at most", longest, "bytes", limit)


def _wrong(seen: list[str], count: int) -> int:
    return len(seen) - len(set(seen)) + count - len(set(seen))


def _high_watermark(transport: Transport, shards: int) -> Fact:
    """Measure the published method of an ordered page: read a page from every shard, and keep the first items."""
    calls = [
        Call(
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "PK = :pk",
                "ExpressionAttributeValues": {":pk": {"S": f"wide{shards}.v1.Wide:{LARGE}:{shard}"}},
                "Limit": PAGE,
            },
        )
        for shard in range(shards)
    ]
    with metered() as meter:
        transport.call_all(calls)
    return Fact(
        f"published high-watermark, {shards} shards", f"read units a page of {PAGE}", meter.consumed.read_units, "units"
    )
