"""Listing: pages of 100 from the local engine, and 16 shards at once from the canned server."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from bench.canned import PAGE
from bench.measure import Contender, Row
from bench.peer import peer_model
from bench.users import SHARDS, TENANT, User, user
from bench.world import TABLE, World

RAW: Final = "botocore, typed dictionaries"
OURS: Final = "collection, entities"
PEER: Final = "pynamodb, models"
FULL: Final = 64
"""The least number of users in a shard on the engine: a page of 100 spans two shards."""


def rows(world: World) -> Iterator[Row]:
    """Yield a page of 100 items from one partition key, and 16 shards of 100 items."""
    yield from _page(world)
    yield from _fan_out(world)


def _page(world: World) -> Iterator[Row]:
    """Compare a page of the layer in shard order with raw clients that read one stored partition key."""
    raw, transport, model = world.raw(), world.transport(), peer_model(world)
    users = world.db(transport).collection(User)
    users.batch_write(put=[user(number) for number in range(SHARDS * PAGE * 2)])
    query = _query(0, PAGE)

    def page_raw() -> None:
        assert len(raw.query(**query)["Items"]) == PAGE  # noqa: S101 - a short page would be too fast

    def page_ours() -> None:
        assert len(users.list({"tenant_id": TENANT}, limit=PAGE).items) == PAGE  # noqa: S101 - as above

    def page_peer() -> None:
        found = list(model.query(f"user.v1.User:{TENANT}:0", limit=PAGE))
        assert len(found) == PAGE  # noqa: S101 - as above

    yield Row(
        f"list {PAGE} items",
        [Contender(RAW, page_raw), Contender(OURS, page_ours), Contender(PEER, page_peer)],
        repeat=8,
        limits={OURS: 0.45},
    )
    transport.close()
    raw.close()


def _fan_out(world: World) -> Iterator[Row]:
    url = world.canned_url
    raw, transport = world.raw(url), world.transport(url)
    users = world.db(transport).collection(User)
    pool = ThreadPoolExecutor(SHARDS)

    def one(shard: int) -> list[Any]:
        items: list[Any] = raw.query(**_query(shard))["Items"]
        return items

    def check(items: int) -> None:
        assert items == SHARDS * PAGE  # noqa: S101 - a short answer would be too fast

    yield Row(
        f"{SHARDS} shards of {PAGE} items, server delay 5 ms",
        [
            Contender(f"{RAW}, one by one", lambda: check(sum(len(one(n)) for n in range(SHARDS)))),
            Contender(f"{RAW}, {SHARDS} threads", lambda: check(sum(len(x) for x in pool.map(one, range(SHARDS))))),
            Contender(OURS, lambda: check(sum(1 for _ in users.scan({"tenant_id": TENANT}, workers=SHARDS)))),
        ],
        repeat=3,
        clock="wall",
        limits={OURS: 0.30},
    )
    pool.shutdown()
    transport.close()
    raw.close()


def _query(shard: int, limit: int | None = None) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"user.v1.User:{TENANT}:{shard}"}},
    }
    return request if limit is None else {**request, "Limit": limit}
