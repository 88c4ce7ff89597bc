"""Verification: each kind of fault is planted, found, repaired, and not found again."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynashard import Dynashard, Entity, definition
from dynashard.entity import ItemKey
from dynashard.routing import home
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO, PK, REV, SK
from dynashard.testing.faults import FaultyTransport, conflict, meanwhile, throttled
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport
from dynashard.transport.interface import Wire
from dynashard_tools.verify import Declared, ReadPace, Report, Task, Verifier
from tests.engine.resharding.mover_world import at_home, strays
from tests.engine.resharding.resharding_world import ABC, ENTITIES, Event, Moving, Old, Thing, index, moving_world
from tests.engine.topology.topology_world import one_clock

pytestmark = pytest.mark.engine

KEY = {"tenant": "abc"}


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def verifier(world: Moving, transport: Transport | None = None, pace: ReadPace | None = None) -> Verifier:
    wire = transport or world.inner
    topology = LeasedTopology(wire, world.topology, runtime=one_clock(world.clock))
    db = Dynashard(wire, table=world.table, cursor_keys=["0" * 16], topology=topology, runtime=Runtime(world.clock))
    return Verifier(db, world.topology, Declared(ENTITIES), clock=world.clock, pace=pace or ReadPace())


def verified(
    world: Moving,
    model: type[Entity] | None = None,
    fields: Mapping[str, Any] | None = None,
    *,
    mend: bool = False,
    transport: Transport | None = None,
) -> Report:
    return verifier(world, transport).run(Task(model, fields, mend=mend))


def found_mended_and_gone(world: Moving, kind: str, number: int = 1) -> None:
    """Check that a fault is found in each scope, repaired, and not found again."""
    for scope in ((None, None), (Thing, None), (Thing, KEY)):
        assert dict(verified(world, *scope).found) == {kind: number}, scope
    repairing = verified(world, Thing, KEY, mend=True)
    assert (dict(repairing.mended), repairing.left) == ({kind: number}, 0)
    assert verified(world).total == 0


def changed(world: Moving, count: int = 8) -> None:
    """Make a partition that has changed its count, with items and without a fault."""
    world.fill(Thing, 30, colour=lambda n: "red" if n % 2 else None, rank=lambda n: n)
    world.resize(ABC, count)


def test_verification_finds_nothing_wrong_with_stored_items(world: Moving) -> None:
    changed(world)
    world.fill(Old, 10)
    world.fill(Event, 10)
    world.resize(index(Thing, "by_colour"), 8)

    report = verified(world)

    assert (report.total, report.items, report.changing) == (0, 50, set())


@pytest.mark.parametrize("count", [8, 2], ids=["grown", "shrunk"])
def test_an_item_away_from_its_home_is_moved_home(world: Moving, count: int) -> None:
    changed(world, count)
    for item in strays(Thing, 4, count, 3):
        world.put(item)

    found_mended_and_gone(world, "away", 3)

    assert world.misplaced(Thing, count) == []
    assert len(world.places(Thing)) == 33
    assert world.of(Thing).find({**KEY, "id": strays(Thing, 4, count, 1)[0][SK]["S"]}) is not None


def test_an_item_whose_home_is_taken_is_reported_and_left(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(late)
    world.put({**at_home(late, Thing, 8), REV: {"S": "theirs"}})
    before = world.raw()

    report = verified(world, mend=True)

    assert (dict(report.found), report.left) == ({"double": 1}, 1)
    assert late[PK]["S"] in report.findings[0].where
    assert world.raw() == before


def marker(item: Wire, target: int, count: int | None = None) -> Wire:
    place = item if count is None else at_home(item, Thing, count)
    return {PK: place[PK], SK: place[SK], MOVED_TO: {"N": str(target)}}


def test_a_left_over_marker_is_deleted(world: Moving) -> None:
    changed(world)
    world.put(marker(strays(Thing, 4, 8, 1)[0], 8))

    found_mended_and_gone(world, "marker")

    assert world.marks() == []


def test_a_marker_without_a_target_is_deleted_from_the_home_that_it_blocks(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(marker(late, 4, 8))

    found_mended_and_gone(world, "lost_target")

    world.of(Thing).create(Thing(**KEY, id=late[SK]["S"]))
    assert verified(world).total == 0


def test_an_item_hidden_by_a_marker_at_its_home_is_moved_back(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(marker(late, 4, 8))
    world.put(late)

    report = verified(world, mend=True)

    assert report.found["lost_target"] == 1
    assert verified(world, mend=True).left == 0
    assert (verified(world).total, world.marks(), world.misplaced(Thing, 8)) == (0, [], [])
    assert len(world.places(Thing)) == 31


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("SET GSI2PK = :wrong", {":wrong": {"S": "elsewhere"}}),
        ("SET GSI1SK = :wrong", {":wrong": {"S": "9999"}}),
        ("REMOVE GSI2PK, GSI2SK", {}),
    ],
    ids=["partition", "sort", "absent"],
)
def test_index_keys_that_differ_from_the_fields_are_rewritten(world: Moving, expression: str, values: Wire) -> None:
    changed(world)
    place = home(definition(Thing), ItemKey("move.v1.Thing:abc", "0001"), 8)
    request = {"TableName": world.table, "Key": {PK: {"S": place}, SK: {"S": "0001"}}, "UpdateExpression": expression}
    world.inner.call("UpdateItem", request | ({"ExpressionAttributeValues": values} if values else {}))
    revision = world.of(Thing).get({**KEY, "id": "0001"}).revision

    found_mended_and_gone(world, "index")

    assert world.of(Thing).get({**KEY, "id": "0001"}).revision == revision
    assert "0001" in [item.id for item in world.of(Thing).list({**KEY, "colour": "red"}, index="by_colour").items]


def test_a_repair_keeps_what_another_version_has_stored(world: Moving) -> None:
    changed(world)
    theirs = {"GSI3PK": {"S": "newer"}, "GSI3SK": {"S": "index"}, "Newer": {"S": "field"}}
    for item in world.raw():
        world.put({**item, **theirs, "GSI1SK": {"S": "9999"}})

    report = verified(world, mend=True)

    assert report.found["index"] == report.mended["index"] > 0
    assert all(item.items() >= theirs.items() for item in world.raw())


def test_an_item_that_cannot_be_decoded_is_reported(world: Moving) -> None:
    changed(world)
    item = strays(Thing, 8, 4, 1)[0]
    world.put({**item, "rank": {"S": "not a number"}})

    report = verified(world, mend=True)

    assert (dict(report.found), report.left) == ({"unreadable": 1}, 1)


def test_an_item_in_an_unread_shard_is_reported_for_random_placement(world: Moving) -> None:
    world.fill(Event, 5)
    stray = {PK: {"S": "move.v1.Event:abc:7"}, SK: {"S": "x"}, "tenant": {"S": "abc"}, "id": {"S": "x"}}
    world.put({**stray, "Type": {"S": "move.v1.Event"}, "Rev": {"S": "r"}})

    report = verified(world, mend=True)

    assert (dict(report.found), report.left) == ({"away": 1}, 1)


@pytest.mark.parametrize("stage", ["pending", "prepare", "move", "settle", "sweep"])
def test_a_changing_partition_is_named_and_its_markers_are_kept(world: Moving, stage: str) -> None:
    world.fill(Thing, 30)
    world.fill(Thing, 5, tenant="other")
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    before = world.raw()

    report = verified(world, mend=True)

    assert (report.total, report.changing) == (0, {ABC.key})
    assert world.raw() == before
    world.finish(ABC)
    assert (verified(world).total, verified(world).changing) == (0, set())


def test_entries_that_a_resize_of_their_index_has_yet_to_rewrite_are_left_to_it(world: Moving) -> None:
    world.fill(Thing, 30, colour=lambda _: "red")
    by_colour = index(Thing, "by_colour")
    world.resharder.start(by_colour, 8, rewrite=True)
    world.until(by_colour, "move")
    before = world.raw()

    report = verified(world, mend=True)

    assert (report.total, world.raw()) == (0, before)


def test_a_fault_that_disappears_meanwhile_is_not_reported(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(late)
    key = {PK: late[PK], SK: late[SK]}
    gone = meanwhile("GetItem", lambda: world.inner.call("DeleteItem", {"TableName": world.table, "Key": key}))

    assert verified(world, transport=FaultyTransport(world.inner, [gone])).total == 0


def test_items_that_a_resize_moves_after_their_record_was_read_are_right(world: Moving) -> None:
    world.fill(Thing, 100)
    moved = FaultyTransport(world.inner, [meanwhile("Scan", lambda: world.resize(ABC, 8), nth=3)])

    report = verifier(world, moved, ReadPace(1e6, clock=world.clock, sleep=world.sleep)).run()

    assert (report.total, moved.waiting) == (0, [])


def test_an_item_changed_during_its_repair_is_not_overwritten(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(late)
    newer = {**late, REV: {"S": "newer"}}
    racing = FaultyTransport(world.inner, [meanwhile("TransactWriteItems", lambda: world.put(newer))])

    report = verified(world, mend=True, transport=racing)

    assert (report.found["away"], report.left) == (1, 1)
    assert newer in world.raw()
    assert verified(world, mend=True).left == 0


def test_a_repair_that_meets_another_transaction_is_tried_again(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    world.put(late)

    report = verified(world, mend=True, transport=FaultyTransport(world.inner, [conflict("TransactWriteItems")]))

    assert (dict(report.mended), report.left) == ({"away": 1}, 0)


def test_the_marker_of_another_resize_is_not_deleted(world: Moving) -> None:
    changed(world)
    [late] = strays(Thing, 4, 8, 1)
    marker = {**late, MOVED_TO: {"N": "8"}}
    newer = {**late, MOVED_TO: {"N": "16"}}
    world.put(marker)
    racing = FaultyTransport(world.inner, [meanwhile("DeleteItem", lambda: world.put(newer))])

    report = verified(world, mend=True, transport=racing)

    assert (report.left, racing.waiting) == (1, [])
    assert newer in world.raw()


def test_throttles_are_retried(world: Moving) -> None:
    changed(world)
    faulty = FaultyTransport(world.inner, [throttled("Scan", nth=1), throttled("Scan", nth=2)])

    assert verified(world, transport=faulty).items == 30
    assert faulty.waiting == []


def test_reading_keeps_its_rate(world: Moving) -> None:
    world.fill(Thing, 200, text=lambda _: "x" * 3000)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    verifier(world, pace=ReadPace(10.0, clock=lambda: now[0], sleep=sleep)).run()

    # 200 items of 3 KB are 150 read units and a little more.
    assert 15.0 <= now[0] <= 20.0


@pytest.mark.parametrize(("rate", "limits"), [(None, {500}), (1e6, {50, 500}), (1000.0, {50, 39}), (100.0, {50, 5})])
def test_a_page_takes_little_of_the_rate(world: Moving, rate: float | None, limits: set[int]) -> None:
    world.fill(Thing, 300, text=lambda _: "x" * 3000)
    recording = FaultyTransport(world.inner)

    report = verifier(world, recording, ReadPace(rate, clock=world.clock, sleep=world.sleep)).run()

    scans = [call.request["Limit"] for call in recording.calls if call.request.get("TableName") == world.table]
    assert report.items == 300
    assert set(scans[:2]) == limits


def test_a_family_without_records_is_looked_up_once(world: Moving) -> None:
    for item in strays(Thing, 2, 4, 30):
        world.put(at_home(item, Thing, 4))
    counted = FaultyTransport(world.inner)

    assert verified(world, Thing, transport=counted).items == 30

    assert counted.sent("BatchGetItem") <= len(ENTITIES)
