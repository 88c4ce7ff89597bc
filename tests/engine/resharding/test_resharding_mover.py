"""The mover moves items in their present state, among other writers, and keeps its budget."""

from collections.abc import Mapping
from typing import Any

import pytest

from dynashard.errors import EngineError
from dynashard.schema import EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, REV, SK
from dynashard.testing.faults import meanwhile
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from tests.engine.resharding.mover_world import at, in_move, move_all, movers, stored
from tests.engine.resharding.resharding_world import ABC, WAIT, Moving, Old, Thing, index, partition

pytestmark = pytest.mark.engine

MOST_BYTES = 400 * 1024


def test_an_item_written_meanwhile_moves_in_its_new_state(world: Moving) -> None:
    [sort] = movers()
    world.put(stored(sort, text={"S": "old"}, Rev={"S": "one"}))
    in_move(world)
    newer = stored(sort, text={"S": "new"}, Rev={"S": "two"})

    move_all(world, world.new([meanwhile("TransactWriteItems", lambda: world.put(newer))]))

    [copy] = [item for item in world.raw() if MOVED_TO not in item]
    assert (copy[PK], copy["text"], copy[REV]) == ({"S": at(sort, 8)}, {"S": "new"}, {"S": "two"})


@pytest.mark.parametrize("revision", [{}, {REV: {"S": "one"}}], ids=["adopted", "ours"])
def test_an_item_deleted_meanwhile_stays_deleted(world: Moving, revision: Wire) -> None:
    [sort] = movers()
    item = stored(sort, **revision)
    world.put(item)
    in_move(world)
    key = {PK: item[PK], SK: item[SK]}

    def delete() -> None:
        world.inner.call("DeleteItem", {"TableName": world.table, "Key": key})

    move_all(world, world.new([meanwhile("TransactWriteItems", delete)]))

    assert world.raw() == []


def test_an_adopted_item_that_gets_a_revision_meanwhile_moves_with_it(world: Moving) -> None:
    [sort] = movers()
    world.put(stored(sort))
    in_move(world)

    written = stored(sort, Rev={"S": "first"})
    move_all(world, world.new([meanwhile("TransactWriteItems", lambda: world.put(written))]))

    assert [item[REV] for item in world.raw() if MOVED_TO not in item] == [{"S": "first"}]


def test_a_marker_never_expires_and_a_copy_expires_with_its_item(world: Moving) -> None:
    soon, newly, long_ago = movers(3)
    expiries = {soon: 600.0, newly: -0.5, long_ago: -600.0}
    in_move(world)
    begun = world.clock.now
    for sort, seconds in expiries.items():
        world.put(stored(sort, Rev={"S": "r"}, ExpiresAt={"N": str(begun + seconds)}))

    move_all(world)

    marks, copies = world.marks(), [item for item in world.raw() if MOVED_TO not in item]
    assert {mark[SK]["S"] for mark in marks} == {soon, newly}
    assert all(EXPIRES_AT not in mark for mark in marks)
    assert {copy[SK]["S"]: float(copy[EXPIRES_AT]["N"]) - begun for copy in copies} == {
        soon: 600.0,
        newly: -0.5,
    }


def test_an_expired_item_at_the_new_home_is_overwritten(world: Moving) -> None:
    [sort] = movers()
    world.put(stored(sort, Rev={"S": "live"}))
    in_move(world)
    world.put(stored(sort, 8, Rev={"S": "dead"}, ExpiresAt={"N": str(int(world.clock.now) - 100)}))

    move_all(world)

    assert [item[REV] for item in world.raw() if MOVED_TO not in item] == [{"S": "live"}]


def test_two_live_items_of_one_key_stop_the_resize_until_one_is_deleted(world: Moving) -> None:
    sort, *others = movers(12)
    for other in others:
        world.put(stored(other, Rev={"S": "r"}))
    world.put(stored(sort, Rev={"S": "here"}))
    in_move(world)
    world.put(stored(sort, 8, Rev={"S": "there"}))

    move_all(world)
    stopped = world.resharder.status(ABC)

    assert stopped.paused
    assert stopped.error is not None
    assert at(sort) in stopped.error
    assert at(sort, 8) in stopped.error
    assert sorted(item[REV]["S"] for item in world.raw() if item[SK]["S"] == sort) == ["here", "there"]
    world.inner.call("DeleteItem", {"TableName": world.table, "Key": {PK: {"S": at(sort, 8)}, SK: {"S": sort}}})
    world.resharder.resume(ABC)
    assert world.finish(ABC).error is None
    assert world.misplaced(Thing, 8) == []
    assert [item[REV]["S"] for item in world.raw() if item[SK]["S"] == sort] == ["here"]


@pytest.mark.parametrize("spare", [0, 1, 9, 10, 12, 13, 64], ids=str)
def test_items_up_to_the_last_byte_move(world: Moving, spare: int) -> None:
    [sort] = movers()
    basic = stored(sort, GSI1PK={"S": "rank"}, GSI1SK={"S": "1"})
    size = sum(len(name) + len(value["S"]) for name, value in basic.items()) + len("text")
    world.put({**basic, "text": {"S": "x" * (MOST_BYTES - size - spare)}})

    world.resharder.start(ABC, 8, survey=False)
    settled = world.until(ABC, "settle")
    [mark] = world.marks()
    world.finish(ABC)

    [copy] = world.raw()
    assert settled.error is None
    assert (mark[PK], mark[MOVED_TO], mark["GSI1PK"]) == ({"S": at(sort)}, {"N": "8"}, {"S": "rank"})
    assert (copy[PK], len(copy["text"]["S"])) == ({"S": at(sort, 8)}, MOST_BYTES - size - spare)
    # `MovedFrom` takes 11 bytes, and `MovedTo` 9. Without room the copy lacks it, and the marker has only keys.
    assert (MOVED_FROM in copy, "text" in mark) == (spare >= 11, spare >= 9)


def test_a_mover_left_over_from_an_earlier_change_moves_nothing_of_a_later_one(world: Moving) -> None:
    world.fill(Thing, 10)
    in_move(world)

    def there_and_back_and_elsewhere() -> None:
        world.finish(ABC)
        world.resize(ABC, 4)
        world.resharder.start(ABC, 2)
        world.until(ABC, "move")
        world.clock.now += WAIT

    late = world.new([meanwhile("Query", there_and_back_and_elsewhere)])
    late.work(ABC.key, 0, seconds=1e9)

    assert world.marks() == []
    assert world.misplaced(Thing, 4) == []
    assert world.finish(ABC).count == 2
    assert world.misplaced(Thing, 2) == []


def test_a_paused_mover_stops_between_two_chunks(world: Moving) -> None:
    world.fill(Thing, 40)
    in_move(world)
    resharder = world.new([meanwhile("Query", lambda: pause(world))])

    resharder.work(ABC.key, 0, seconds=60)

    assert world.marks() == []


def pause(world: Moving) -> None:
    world.resharder.pause(ABC)
    # The time for which a mover relies on a record.
    world.clock.now += 6


def test_an_index_entry_written_meanwhile_is_rewritten_in_its_new_state(world: Moving) -> None:
    world.fill(Thing, 1, colour=lambda _: "red")
    scope = index(Thing, "by_colour")
    world.resharder.start(scope, 64, survey=False, rewrite=True)
    world.until(scope, "move")
    [item] = world.raw()

    faulty = world.new([meanwhile("UpdateItem", lambda: world.put({**item, REV: {"S": "new"}, "text": {"S": "new"}}))])
    world.finish(scope, faulty)

    [now] = world.raw()
    assert (now["text"], now[REV]) == ({"S": "new"}, {"S": "new"})
    [found] = world.of(Thing).list({"tenant": "abc", "colour": "red"}, index="by_colour").items
    assert found.text == "new"


def test_a_moved_item_of_1_kilobyte_costs_at_most_5_write_units_altogether(world: Moving) -> None:
    texts = "x" * 900
    world.fill(Old, 0)
    for n in range(120):
        item = {"id": {"S": f"{n:04d}"}, "tenant": {"S": "abc"}, "text": {"S": texts}}
        world.put({PK: {"S": "move.v1.Old:abc"}, SK: {"S": f"{n:04d}"}, **item})
    counted = Counting(world.inner)
    resharder = world.on(counted)

    resharder.start(partition(Old), 8, survey=False)
    status = world.finish(partition(Old), resharder)

    assert status.moved == 120
    assert counted.units[world.table] / status.moved == 5.0
    # Records and progress take a few units in all.
    assert counted.units[world.topology] < 40
    assert abs(status.write_units - counted.units[world.table]) < 10


class Counting(OneByOne):
    """Adds up write units by table."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.units: dict[str, float] = {}

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        answer = self.inner.call(operation, request, resend=resend)
        if operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"):
            capacity = answer["ConsumedCapacity"]
            for entry in capacity if isinstance(capacity, list) else [capacity]:
                name = entry["TableName"]
                self.units[name] = self.units.get(name, 0.0) + entry["CapacityUnits"]
        return answer


def test_a_budget_is_kept_though_every_wave_is_sent_by_another_process(world: Moving) -> None:
    for n in range(12):
        world.put(
            {PK: {"S": "move.v1.Old:abc"}, SK: {"S": f"{n:04d}"}, "tenant": {"S": "abc"}, "id": {"S": f"{n:04d}"}}
        )
    scope = partition(Old)
    world.resharder.start(scope, 8, budget=10.0, survey=False)
    world.until(scope, "move")
    world.clock.now += WAIT
    began = world.clock.now

    slices = 0
    while not world.on(world.inner).work(scope.key, 0, seconds=0.01):
        slices += 1

    units = world.resharder.status(scope).write_units
    assert units == 4 * 12
    # The last wave, of 2 items, needs no pause after it.
    assert (units - 8.001) / 10 <= world.clock.now - began < units / 10
    assert slices > 4


def test_a_budget_is_divided_among_the_tasks_that_are_worked_on_at_a_time(world: Moving) -> None:
    world.fill(Thing, 60)
    world.resharder.start(ABC, 8, budget=40.0, survey=False)
    world.until(ABC, "move")
    world.clock.now += WAIT
    began = world.clock.now

    world.on(world.inner, concurrency=4).work(ABC.key, 0, seconds=1e9)

    units = world.resharder.status(ABC).write_units
    assert units >= 4 * 4
    assert world.clock.now - began >= (units - 8.001) / 10


def test_an_unknown_task_has_no_work(world: Moving) -> None:
    in_move(world)

    assert [world.resharder.work(ABC.key, task, seconds=1) for task in (-1, 4, 99)] == [True, True, True]


def test_a_permanent_refusal_is_raised(world: Moving) -> None:
    world.fill(Thing, 10)
    in_move(world)

    resharder = world.on(world.inner)
    object.__setattr__(resharder._context, "table", "no-such-table")

    with pytest.raises(EngineError, match="Create the table"):
        resharder.work(ABC.key, 0, seconds=5)
