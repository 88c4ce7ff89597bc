"""An index whose keys hold the time of expiry, which is stored to the second."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard import Entity, Index, Key, Registry, Shards, Update
from tests.engine.stored_things import World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

SECOND = datetime(2126, 1, 1, tzinfo=UTC)
HALF = timedelta(milliseconds=500)
INDEXES = ("by_expiry", "by_expiry_spread")


class Pass(
    Entity,
    name="test.v1.Pass",
    key=Key("{tenant}", "{id}"),
    indexes=[
        Index("GSI1", "by_expiry", partition="{tenant}", sort="{expires_at}#{id}"),
        Index(
            "GSI2",
            "by_expiry_spread",
            partition="{tenant}",
            sort="{expires_at}#{id}",
            shards=Shards(4),
            shard_by="index_key",
        ),
    ],
    expires="expires_at",
    registry=Registry(),
):
    """An entity that is listed by when it expires."""

    tenant: str = "abc"
    id: str
    expires_at: datetime | None = None


def entries(world: World, index: str, **options: Any) -> list[str]:
    return [each.id for each in world.of(Pass).items({"tenant": "abc"}, index=index, order="ordered", **options)]


@pytest.mark.parametrize("index", INDEXES)
def test_an_item_that_expires_within_a_second_is_listed(world: World, index: str) -> None:
    passes = world.of(Pass)

    passes.create(id="created", expires_at=SECOND + HALF)
    passes.batch_write([Pass(id="in a batch", expires_at=SECOND + HALF)])
    passes.create(id="updated", expires_at=SECOND)
    passes.update("updated", tenant="abc", expires_at=SECOND + HALF)
    passes.create(id="in a transaction")
    world.transact(Update(Pass, {"tenant": "abc", "id": "in a transaction"}, set={"expires_at": SECOND + HALF}))

    assert entries(world, index) == ["created", "in a batch", "in a transaction", "updated"]


def test_a_filter_compares_the_very_time(world: World) -> None:
    world.of(Pass).create(id="1", expires_at=SECOND)

    def found(word: str, at: datetime) -> int:
        return len(list(world.of(Pass).items(tenant="abc", filters={"expires_at": {word: at}})))

    words = ("eq", "ne", "gt", "gte", "lt", "lte")
    assert [found(word, SECOND + HALF) for word in words] == [0, 1, 0, 0, 1, 1]
    assert [found(word, SECOND) for word in words] == [1, 0, 0, 1, 0, 1]
    assert entries(world, "by_expiry", filters={"expires_at": {"gte": SECOND + HALF}}) == []
