"""Whole resizes, from the resize request to the sweep."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dynashard import definition
from dynashard.entity import ItemKey
from dynashard.resharding import Scope
from dynashard.routing import home
from dynashard.schema import MOVED_FROM, PK, REV, SK, TYPE
from tests.engine.resharding.resharding_world import (
    TIMING,
    WAIT,
    Event,
    Leaf,
    Member,
    Moving,
    Old,
    Shift,
    Thing,
    index,
    partition,
    whole,
)

pytestmark = pytest.mark.engine


def listed(world: Moving, model: type[Any] = Thing, tenant: str = "abc", **asked: Any) -> dict[str, Any]:
    pages = world.of(model).pages({"tenant": tenant}, **asked)
    items = [item for page in pages for item in page.items]
    assert len({item.id for item in items}) == len(items)
    return {item.id: item for item in items}


@pytest.mark.parametrize("new", [8, 32, 2, 1])
def test_items_are_stored_once_at_their_new_homes_and_no_markers_are_left(world: Moving, new: int) -> None:
    world.fill(Thing, 60, rank=lambda n: n, text=lambda n: f"text {n}")
    before = listed(world)
    moving = len(world.misplaced(Thing, new))

    status = world.resize(partition(Thing), new)

    assert (status.stage, status.count, status.target, status.swept) == ("stable", new, None, True)
    assert (status.moved, status.total, status.swept_marks) == (moving, moving, moving)
    assert (world.misplaced(Thing, new), world.marks(), world.progress_items()) == ([], [], [])
    after = listed(world)
    assert after == before
    assert {key: item.revision for key, item in after.items()} == {key: item.revision for key, item in before.items()}
    assert sorted(entry.rsplit(":")[-1] for entry in world.record("move.v1.Thing:abc").history) == sorted(
        {str(new), "4"}
    )


def test_a_moved_copy_names_its_origin_until_it_is_written(world: Moving) -> None:
    world.fill(Thing, 20)
    moving = {key[1] for key in world.misplaced(Thing, 8)}

    world.resize(partition(Thing), 8)
    world.of(Thing).update({"tenant": "abc", "id": min(moving)}, set={"text": "new"})

    marked = {item[SK]["S"] for item in world.raw() if item.get(MOVED_FROM) == {"N": "4"}}
    assert marked == moving - {min(moving)}


def test_a_count_can_change_again_and_again(world: Moving) -> None:
    world.fill(Thing, 30)
    before = listed(world)

    for count in (16, 2, 4):
        world.resize(partition(Thing), count)

    assert world.misplaced(Thing, 4) == []
    assert listed(world) == before


def test_only_the_requested_partition_changes(world: Moving) -> None:
    world.fill(Thing, 20)
    world.fill(Thing, 20, tenant="other")

    world.resize(partition(Thing), 8)

    assert world.misplaced(Thing, 8, "abc") == []
    assert world.misplaced(Thing, 4, "other") == []
    assert len(listed(world, tenant="other")) == 20


def test_unsharded_items_of_any_writer_are_adopted(world: Moving) -> None:
    bare = "move.v1.Old:abc"
    for n in range(30):
        typed = {TYPE: {"S": "move.v1.Old"}, REV: {"S": f"r{n}"}} if n % 3 else {}
        fields = {"tenant": {"S": "abc"}, "id": {"S": f"{n:04d}"}, "text": {"S": f"text {n}"}}
        world.put({PK: {"S": bare}, SK: {"S": f"{n:04d}"}, **fields, **typed})
    before = listed(world, Old)

    status = world.resize(partition(Old), 8)

    assert (status.moved, status.swept_marks, len(before)) == (30, 30, 30)
    assert (world.misplaced(Old, 8), world.marks()) == ([], [])
    assert listed(world, Old) == before
    assert {item[MOVED_FROM]["N"] for item in world.raw()} == {"0"}


def test_all_partitions_of_an_entity_change_but_those_with_counts_of_their_own(world: Moving) -> None:
    for tenant in ("abc", "b", "c"):
        world.fill(Thing, 20, tenant=tenant)
        world.fill(Old, 5, tenant=tenant)
    world.resize(partition(Thing, "b"), 2)

    status = world.resize(whole(Thing), 8)

    assert (status.partition, status.count) == (None, 8)
    assert [world.misplaced(Thing, count, name) for count, name in ((8, "abc"), (2, "b"), (8, "c"))] == [[], [], []]
    assert world.misplaced(Old, 0) == []
    assert world.marks() == []
    assert [len(listed(world, tenant=tenant)) for tenant in ("abc", "b", "c")] == [20, 20, 20]


def test_a_partition_with_its_own_count_may_change_while_its_family_does(world: Moving) -> None:
    for tenant in ("abc", "b"):
        world.fill(Thing, 20, tenant=tenant)
    world.resize(partition(Thing, "b"), 2)
    world.resharder.start(whole(Thing), 8)
    world.resharder.start(partition(Thing, "b"), 8)

    for _ in range(12):
        world.step("move.v1.Thing")
        world.step("move.v1.Thing:b")

    assert world.resharder.busy() == []
    assert (world.misplaced(Thing, 8), world.marks()) == ([], [])
    assert [len(listed(world, tenant=tenant)) for tenant in ("abc", "b")] == [20, 20]


def test_the_first_record_of_a_single_partition_takes_effect_one_wait_after_its_family_announces_such_records(
    world: Moving,
) -> None:
    world.of(Event).find({"tenant": "abc", "id": "1"})
    world.clock.now += 2 * WAIT
    waits = []
    for tenant in ("abc", "b"):
        began = world.clock.now
        world.resharder.start(partition(Event, tenant), 4)
        world.until(partition(Event, tenant), "prepare")
        waits.append(world.clock.now - began)

    # Each time the last step waits after PREPARE is published.
    assert waits == [2 * WAIT, WAIT]


def test_a_family_sweeps_only_its_own_markers(world: Moving) -> None:
    for tenant in ("abc", "b"):
        world.fill(Thing, 20, tenant=tenant)
    world.resize(partition(Thing, "b"), 2)
    world.resharder.start(whole(Thing), 8)
    world.until(whole(Thing), "sweep")
    world.resharder.start(partition(Thing, "b"), 8)
    world.until(partition(Thing, "b"), "settle")
    marks = [mark for mark in world.marks() if ":b:" in mark[PK]["S"]]

    world.finish(whole(Thing))

    assert marks != []
    assert world.marks() == marks
    world.finish(partition(Thing, "b"))
    assert (world.misplaced(Thing, 8), world.marks()) == ([], [])


def test_a_family_leaves_the_markers_of_other_families(world: Moving) -> None:
    world.fill(Thing, 20)
    world.fill(Old, 20)
    world.resize(partition(Old), 4)
    world.resharder.start(partition(Old), 8)
    world.until(partition(Old), "sweep")
    marks = world.marks()

    world.resize(whole(Thing), 8)

    assert marks != []
    assert world.marks() == marks


def test_all_entities_of_a_family_move_together(world: Moving) -> None:
    members = [Member(team="red", id=f"{n}") for n in range(15)]
    shifts = [Shift(team="red", at=f"{n}") for n in range(15)]
    world.of(Member).batch_write(put=members)
    world.of(Shift).batch_write(put=shifts)

    world.resize(partition(Shift, "red"), 16)

    assert world.misplaced(Member, 16) == []
    found = [item for page in world.of(Member).pages({"team": "red"}) for item in page.items]
    assert sorted(item.id for item in found) == sorted(item.id for item in members)


def test_an_index_gets_another_count_without_moving_an_item(world: Moving) -> None:
    world.fill(Thing, 40, colour=lambda n: ("red", "blue", None)[n % 3])
    before = {item[SK]["S"]: (item[PK], item[REV]) for item in world.raw()}

    status = world.resize(index(Thing, "by_colour"), 16, rewrite=True)

    assert (status.index, status.count, status.phase, status.swept) == ("GSI2", 16, "stable", True)
    assert status.moved == status.total
    assert {item[SK]["S"]: (item[PK], item[REV]) for item in world.raw()} == before
    red = world.of(Thing).pages({"tenant": "abc", "colour": "red"}, index="by_colour")
    assert sorted(item.id for page in red for item in page.items) == [f"{n:04d}" for n in range(40) if n % 3 == 0]
    shards = {item["GSI2PK"]["S"].rpartition(":")[2] for item in world.raw() if "GSI2PK" in item}
    assert max(int(shard) for shard in shards) > 1


def test_an_index_can_shrink(world: Moving) -> None:
    world.fill(Thing, 40, colour=lambda _: "red")

    world.resize(index(Thing, "by_colour"), 1)

    assert {item["GSI2PK"]["S"] for item in world.raw()} == {"move.v1.Thing:abc:red:0"}


def test_marked_items_keep_their_index_keys_until_they_are_swept(world: Moving) -> None:
    world.fill(Thing, 20, rank=lambda n: n, colour=lambda _: "red")
    scope = partition(Thing)
    world.resharder.start(scope, 8)

    world.until(scope, "settle")

    assert world.marks() != []
    assert all("GSI1PK" in mark and "GSI2PK" in mark for mark in world.marks())


def test_random_placement_grows_without_moving_anything(world: Moving) -> None:
    world.fill(Event, 20)
    before = world.raw()
    world.clock.now += WAIT
    asked = world.clock.now

    world.resharder.start(whole(Event), 8, cause="throttle")
    status = world.finish(whole(Event))

    assert (status.count, status.phase, status.cause) == (8, "stable", "throttle")
    # If nothing moves, one wait is enough: readers read all shards before writers use the new ones.
    assert status.since == asked + WAIT
    assert world.raw() == before
    assert world.resharder.poll() == []


@pytest.mark.parametrize("scope", [partition(Event), whole(Event)], ids=["partition", "family"])
def test_random_placement_shrinks_when_the_removed_shards_are_empty(world: Moving, scope: Any) -> None:
    late = datetime.fromtimestamp(world.clock.now + 3600, UTC)
    world.fill(Event, 20, until=lambda _: late)
    # Other entities have shards with such numbers too.
    world.fill(Thing, 20)
    # And what stays in the first shard may stay for ever.
    lasting = {PK: {"S": "move.v1.Event:abc:0"}, SK: {"S": "lasting"}, TYPE: {"S": "move.v1.Event"}, REV: {"S": "r"}}
    world.put({**lasting, "tenant": {"S": "abc"}, "id": {"S": "lasting"}})
    world.resharder.start(scope, 1)

    for _ in range(5):
        step = world.step(scope.key)
    held = world.resharder.status(scope)
    # A clock that is behind still sees the items.
    world.clock.now = late.timestamp() + TIMING.skew / 2
    world.step(scope.key)
    doubtful = world.resharder.status(scope)
    world.clock.now += 3600
    status = world.finish(scope)

    assert (held.stage, doubtful.stage, step.kind) == ("prepare", "prepare", "wait")
    assert (status.count, status.stage) == (1, "stable")


def test_a_check_whether_removed_shards_are_empty_goes_on_where_the_last_one_stopped(world: Moving) -> None:
    scope = partition(Event)
    world.resize(scope, 32)
    last = {PK: {"S": "move.v1.Event:abc:31"}, SK: {"S": "last"}, TYPE: {"S": "move.v1.Event"}, REV: {"S": "r"}}
    world.put({**last, "tenant": {"S": "abc"}, "id": {"S": "last"}})
    world.resharder.start(scope, 1)
    world.until(scope, "prepare")
    asked = []

    for _ in range(4):
        world.step(scope.key, world.new())
        asked.append(world.faulty.sent("Query"))
    world.inner.call("DeleteItem", {"TableName": world.table, "Key": {PK: last[PK], SK: last[SK]}})

    assert asked == [20, 11, 1, 1]
    assert world.finish(scope).count == 1


@pytest.mark.parametrize("all_partitions", [False, True], ids=["one", "all"])
def test_keys_without_a_prefix_move_too(world: Moving, all_partitions: bool) -> None:  # noqa: FBT001
    entity = definition(Leaf)
    items = [Leaf(tree="a/b", id=f"{n}") for n in range(20)]
    world.of(Leaf).batch_write(put=items)
    world.fill(Thing, 10)
    things = world.places(Thing)

    world.resize(Scope(entity) if all_partitions else Scope(entity, "a/b"), 8)

    found = [item.id for page in world.of(Leaf).pages({"tree": "a/b"}) for item in page.items]
    assert sorted(found) == sorted(item.id for item in items)
    assert (world.places(Thing), world.marks()) == (things, [])
    stored = {item[SK]["S"]: item[PK]["S"] for item in world.raw() if item[TYPE]["S"] == entity.name}
    assert all(place == home(entity, ItemKey("a/b", sort), 8) for sort, place in stored.items())


def test_items_of_unknown_owners_stay_where_they_are(world: Moving) -> None:
    world.fill(Thing, 10)
    strange = {PK: {"S": "move.v1.Thingamajig:abc:0"}, SK: {"S": "x"}}
    foreign = {PK: {"S": "move.v1.Thing:abc:3"}, SK: {"S": "not at home"}, "GSI1PK": {"S": "x"}, "GSI1SK": {"S": "x"}}
    assert home(definition(Thing), ItemKey("move.v1.Thing:abc", "not at home"), 4) != "move.v1.Thing:abc:3"
    world.put(strange)
    world.put(foreign)

    world.resize(whole(Thing), 8)

    left = {(item[PK]["S"], item[SK]["S"]) for item in world.raw()}
    assert ("move.v1.Thingamajig:abc:0", "x") in left
    assert ("move.v1.Thing:abc:3", "not at home") in left
