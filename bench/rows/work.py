"""The requests of listings on the local engine: Queries, rounds, read units, and bytes of cursors."""

import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from bench.measure import Fact
from bench.users import User, user
from bench.world import TABLE, World
from dynashard import Collection, Entity, Key, Registry, Shards
from dynashard.transport import Call, metered
from dynashard.transport.sdk import SdkTransport

LARGE: Final = "large"
"""A tenant whose items are 1 KB each."""
ITEMS: Final = 3200
PAGE: Final = 50
SHARDS: Final = 16


class Wide(
    Entity,
    name="wide.v1.Wide",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(64),
    registry=Registry(),
):
    """An entity with 64 shards, for the size of its cursors."""

    tenant_id: str
    id: str


def rows(world: World) -> Iterator[Fact]:
    """Yield the requests of round-robin and ordered pages, and of the published high-watermark method."""
    transport = world.transport()
    db = world.db(transport)
    users = db.collection(User)
    users.batch_write(put=[_large(number) for number in range(ITEMS)])
    yield from _round_robin(users)
    yield from _ordered(users)
    yield _high_watermark(transport)
    yield from _cursors(db.collection(Wide))
    transport.close()


def _large(number: int) -> User:
    small = user(number)
    return small.model_copy(update={"tenant_id": LARGE, "title": "x" * 440})


def _round_robin(users: Collection[User]) -> Iterator[Fact]:
    with metered() as first:
        users.list({"tenant_id": LARGE}, limit=PAGE)
    yield Fact("round-robin", f"Queries for a first page of {PAGE}", first.queries, "Queries", 1)
    seen: list[str] = []
    queries: list[int] = []
    for page in users.pages({"tenant_id": LARGE}, limit=PAGE):
        seen += [item.id for item in page.items]
        queries.append(page.consumed.requests)
    yield Fact("round-robin", "Queries a page over the whole listing", statistics.mean(queries), "Queries")
    yield Fact(
        "round-robin",
        f"items of {ITEMS} missed or repeated",
        len(seen) - len(set(seen)) + ITEMS - len(set(seen)),
        "items",
        0,
    )


def _ordered(users: Collection[User]) -> Iterator[Fact]:
    pages = list(users.pages({"tenant_id": LARGE}, order="ordered", limit=PAGE))
    full = [page for page in pages if len(page.items) == PAGE]
    keys = [item.id for page in pages for item in page.items]
    yield Fact("ordered", "rounds a page, at most", max(page.rounds for page in pages), "rounds", 2)
    yield Fact(
        "ordered",
        f"read units a page of {PAGE}, 1 KB items",
        statistics.mean(page.consumed.read_units for page in full),
        "units",
        17,
    )
    yield Fact(
        "ordered",
        "items out of order",
        sum(a >= b for a, b in pairwise(keys)) + ITEMS - len(keys),
        "items",
        0,
    )
    yield Fact("ordered", "bytes of a cursor", max(len(page.cursor) for page in pages if page.cursor), "bytes", 200)


def _high_watermark(transport: SdkTransport) -> Fact:
    """Measure the published method of an ordered page: read a page from every shard, and keep the first items."""
    calls = [
        Call(
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "PK = :pk",
                "ExpressionAttributeValues": {":pk": {"S": f"user.v1.User:{LARGE}:{shard}"}},
                "Limit": PAGE,
            },
        )
        for shard in range(SHARDS)
    ]
    with metered() as meter:
        transport.call_all(calls)
    return Fact(
        "published high-watermark", f"read units a page of {PAGE}, 1 KB items", meter.consumed.read_units, "units"
    )


def _cursors(wide: Collection[Wide]) -> Iterator[Fact]:
    wide.batch_write(put=[Wide(tenant_id=LARGE, id=f"2Xk{number:024d}") for number in range(64 * 20)])
    cursors = [page.cursor for page in wide.pages({"tenant_id": LARGE}, limit=3) if page.cursor]
    yield Fact("round-robin", "bytes of a cursor at 64 shards, at most", max(map(len, cursors)), "bytes", 2048)
