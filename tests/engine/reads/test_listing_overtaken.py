"""Listings between whose pages items move to another layout, or home after they were stored late."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from dynashard import definition
from dynashard.entity import ItemKey
from dynashard.routing import home
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from tests.engine.repository.late_world import client, moving_ids, things
from tests.engine.resharding.mover_world import strays
from tests.engine.resharding.resharding_world import ABC, Moving, Thing, moving_world

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

TENANT: Final = {"tenant": "abc"}
IDS: Final = [f"i{number:02d}" for number in range(24)]
ORDERS: Final = ("round_robin", "shard", "ordered")


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


def listed_around(world: Moving, between: Any, **asked: Any) -> list[str]:
    """List with an action between the first two pages, and return the ids."""
    items = things(client(world))
    first = items.list(TENANT, limit=2, **asked)
    found, cursor = [item.id for item in first.items], first.cursor
    between()
    while cursor is not None:
        page = things(client(world)).list(TENANT, limit=2, cursor=cursor, **asked)
        found, cursor = found + [item.id for item in page.items], page.cursor
    return sorted(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ORDERS)
def test_entries_with_equal_sort_keys_are_listed_once_across_a_whole_resize(
    world: Moving, order: str, direction: str, count: int
) -> None:
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each, rank=7) for each in IDS])

    found = listed_around(world, lambda: world.resize(ABC, count), index="by_rank", order=order, direction=direction)

    assert found == IDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", ["prepare", "move", "settle"])
@pytest.mark.parametrize("order", ORDERS)
def test_many_entries_with_one_sort_key_are_listed_once_though_a_resize_begins_among_them(
    world: Moving, order: str, stage: str
) -> None:
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each, rank=7) for each in IDS])
    page = things(client(world)).list(TENANT, limit=14, index="by_rank", order=order)
    found = [item.id for item in page.items]
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, stage)

    while page.cursor is not None:
        page = things(client(world)).list(TENANT, limit=2, cursor=page.cursor, index="by_rank", order=order)
        found += [item.id for item in page.items]

    assert sorted(found) == IDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ORDERS)
def test_many_entries_with_one_sort_key_that_were_read_in_a_resize_are_not_listed_again_after_it(
    world: Moving, order: str, direction: str
) -> None:
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each, rank=7) for each in IDS])
    asked = {"index": "by_rank", "order": order, "direction": direction}
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "move")
    page = things(client(world)).list(TENANT, limit=14, **asked)
    found = [item.id for item in page.items]
    world.finish(ABC)
    # They stand before what was read, so the next page returns them first and then continues after one of them.
    created = [f"{letter}{number}" for letter in "az" for number in range(4)]
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each, rank=7) for each in created])

    while page.cursor is not None:
        page = things(client(world)).list(TENANT, limit=2, cursor=page.cursor, **asked)
        found += [item.id for item in page.items]

    assert len(found) == len(set(found))
    assert set(IDS) <= set(found)


def test_an_item_whose_home_was_read_before_its_old_home_is_listed_there(world: Moving) -> None:
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each) for each in IDS])
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    late = strays(Thing, 4, 8, 6)
    for item in late:
        world.inner.call("PutItem", {"TableName": world.table, "Item": item})

    found = listed_around(world, lambda: None, order="round_robin")

    assert found == [*IDS, *sorted(item["SK"]["S"] for item in late)]


@pytest.mark.parametrize("order", ORDERS)
def test_an_item_moved_home_between_two_pages_is_listed_once(world: Moving, order: str) -> None:
    ids = moving_ids(4, 8, 6)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    for item in strays(Thing, 4, 8, 6):
        world.inner.call("PutItem", {"TableName": world.table, "Item": item})

    found = listed_around(world, lambda: world.finish(ABC), order=order)

    assert found == sorted(ids)


def test_an_ordered_page_with_strays_in_all_shards_is_read_once_more(world: Moving) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    late = strays(Thing, 4, 8, 12)
    for item in late:
        world.inner.call("PutItem", {"TableName": world.table, "Item": item})

    page = things(client(world)).list(TENANT, order="ordered", limit=100)

    assert len({item["PK"]["S"] for item in late}) > 2
    assert [item.id for item in page.items] == sorted(item["SK"]["S"] for item in late)
    assert page.consumed.requests <= 3 * 8


@pytest.mark.parametrize("name", ["scan", "count"])
def test_an_item_stored_late_is_read_once(world: Moving, name: str) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    for item in strays(Thing, 4, 8, 6):
        world.inner.call("PutItem", {"TableName": world.table, "Item": item})
    items = things(client(world))

    found = items.count(TENANT, consistent=True) if name == "count" else len(list(items.scan(TENANT, workers=4)))

    assert found == 6


@pytest.mark.parametrize("name", ["list", "ordered", "shard", "scan", "count"])
def test_a_listing_ends_even_if_an_item_cannot_be_moved_home(world: Moving, name: str) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    [item] = strays(Thing, 4, 8, 1)
    entity = definition(Thing)
    place = home(entity, entity.key_of({"tenant": "abc", "id": item["SK"]["S"]}), 8)
    world.inner.call("PutItem", {"TableName": world.table, "Item": item})
    marker = {"PK": {"S": place}, "SK": item["SK"], "MovedTo": {"N": "8"}}
    world.inner.call("PutItem", {"TableName": world.table, "Item": marker})
    items = things(client(world))
    orders = {"list": "round_robin", "ordered": "ordered", "shard": "shard"}

    if name in orders:
        found = len(items.list(TENANT, order=orders[name], limit=10).items)
    else:
        found = items.count(TENANT) if name == "count" else len(list(items.scan(TENANT)))

    assert found == 1


@pytest.mark.parametrize("name", ["list", "ordered", "shard", "scan", "count"])
def test_of_an_item_at_both_homes_the_one_at_the_new_home_is_listed(world: Moving, name: str) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    [late] = strays(Thing, 4, 8, 1)
    things(client(world)).create(Thing(tenant="abc", id=late["SK"]["S"], rank=7))
    world.inner.call("PutItem", {"TableName": world.table, "Item": late})
    items = things(client(world))
    orders = {"list": "round_robin", "ordered": "ordered", "shard": "shard"}

    if name == "count":
        assert items.count(TENANT) == 1
        return
    found = items.list(TENANT, order=orders[name], limit=10).items if name in orders else items.scan(TENANT)

    assert [(item.id, item.rank) for item in found] == [(late["SK"]["S"], 7)]


class HalfVisible(OneByOne):
    """Has an item moved home before the first Query, and hides it from the first Query of its home.

    DynamoDB shows Queries the parts of a transaction at different moments.
    """

    def __init__(self, inner: Transport, item: Wire, home: str, move: Callable[[], object]) -> None:
        self._inner, self._item, self._home, self._move = inner, item, home, move
        self._moved = self._hidden = False

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        if operation == "Query" and not self._moved:
            self._moved = True
            self._move()
        answer = self._inner.call(operation, request, resend=resend)
        values = request.get("ExpressionAttributeValues", {}).values()
        if operation == "Query" and not self._hidden and {"S": self._home} in values:
            self._hidden = True
            kept = [row for row in answer.get("Items", ()) if row["SK"] != self._item["SK"]]
            assert len(kept) < len(answer.get("Items", ()))
            return {**answer, "Items": kept, "Count": len(kept)}
        return answer


LISTINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{
        f"{order} {direction}": lambda things, order=order, direction=direction: [  # type: ignore[misc]
            item.id for item in things.list(TENANT, order=order, direction=direction, limit=100).items
        ]
        for order in ORDERS
        for direction in ("asc", "desc")
    },
    "scan": lambda things: [item.id for item in things.scan(TENANT)],
}


@pytest.mark.parametrize("name", LISTINGS)
def test_an_item_is_listed_although_the_transaction_that_moves_it_home_is_half_visible(
    world: Moving, name: str
) -> None:
    stored = [f"x{number}" for number in range(12)]
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each) for each in stored])
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    [late] = strays(Thing, 4, 8, 1)
    world.inner.call("PutItem", {"TableName": world.table, "Item": late})
    key = {**TENANT, "id": late["SK"]["S"]}
    to = home(definition(Thing), ItemKey(ABC.partition or "", late["SK"]["S"]), 8)
    half = HalfVisible(world.inner, late, to, lambda: things(client(world)).get(key, consistent=True))

    found = LISTINGS[name](things(client(world, transport=half)))

    assert sorted(found) == sorted([*stored, late["SK"]["S"]])


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_page_that_begins_at_the_key_of_an_item_just_moved_home_lists_it(world: Moving, direction: str) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    [late] = strays(Thing, 4, 8, 1)
    key = {**TENANT, "id": late["SK"]["S"]}
    things(client(world)).create(Thing(tenant="aaa", id=key["id"]))
    asked: dict[str, Any] = {"partition": [{"tenant": "aaa"}, TENANT], "order": "ordered", "direction": direction}
    first = things(client(world)).list(limit=1, **asked)
    world.inner.call("PutItem", {"TableName": world.table, "Item": late})
    to = home(definition(Thing), ItemKey(ABC.partition or "", key["id"]), 8)
    half = HalfVisible(world.inner, late, to, lambda: things(client(world)).get(key, consistent=True))

    second = things(client(world, transport=half)).list(limit=100, cursor=first.cursor, **asked)

    assert [item.tenant for item in (*first.items, *second.items)] == ["aaa", "abc"]


class ReadsOfPairs(OneByOne):
    """Counts the transactions that read an item at both places."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.count = 0

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        self.count += operation == "TransactGetItems"
        return self._inner.call(operation, request, resend=resend)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ORDERS)
def test_markers_of_items_that_a_page_does_not_reach_cost_nothing(world: Moving, order: str, direction: str) -> None:
    things(client(world)).batch_write(put=[Thing(tenant="abc", id=each) for each in IDS])
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    counting = ReadsOfPairs(world.inner)
    items = things(client(world, transport=counting))

    found = [item.id for page in items.pages(TENANT, order=order, direction=direction, limit=2) for item in page.items]

    assert (sorted(found), counting.count) == (IDS, 0)
