"""Edges whose halves or counts disagree are found and repaired, also under traffic."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from dynashard.testing.faults import Fault, Send, meanwhile
from dynashard.topology import Phase, View
from dynashard.transport.interface import Wire
from dynashard_patterns.edges import EdgeRepair, Edges, Miscount
from tests.engine.patterns.edge_world import ACTOR, FANS, TENANT, USER, agree, edges_of
from tests.engine.stored_things import World
from tests.engine.unfit_rows import UnfitRows

pytestmark = pytest.mark.engine


def repair_of(world: World, declared: Edges[Any] = FANS) -> EdgeRepair[Any]:
    return EdgeRepair(world.store, declared, edges_of(world, declared))


def take(world: World, *sorts: str) -> None:
    """Delete items by their sort keys directly in the table."""
    for item in world.raw():
        if item["SK"]["S"] in sorts:
            world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})


def followed(world: World, number: int = 5) -> None:
    fans = edges_of(world)
    for each in range(number):
        fans.add(TENANT, f"User.{each}", ACTOR, note=f"note {each}")


def test_nothing_is_found_if_all_edges_agree(world: World) -> None:
    followed(world)

    assert repair_of(world).check(TENANT, ACTOR).none
    assert repair_of(world).repair(TENANT, ACTOR).mended
    assert repair_of(world).repair(TENANT, "Actor.nobody").none


def test_missing_halves_are_found_and_written(world: World) -> None:
    followed(world)
    whole = sorted(item["SK"]["S"] + item["PK"]["S"] for item in world.raw() if "other" in item)
    take(world, "FANNED_BY.User.1", "FANNED_BY.User.3")

    found = [repair_of(world).check(TENANT, user) for user in ("User.0", "User.1", "User.3")]

    assert [list(drift.halves) for drift in found] == [[], ["FAN_OF.Actor.5"], ["FAN_OF.Actor.5"]]
    assert not any(drift.mended for drift in found)
    for user in ("User.1", "User.3"):
        assert repair_of(world).repair(TENANT, user).mended
    # Their counts were right, and writing the halves has counted them again.
    assert repair_of(world).check(TENANT, ACTOR).counted == {"FANNED_BY": Miscount(counted=7, edges=5)}
    assert repair_of(world).repair(TENANT, ACTOR).mended
    agree(world)
    assert sorted(item["SK"]["S"] + item["PK"]["S"] for item in world.raw() if "other" in item) == whole
    assert {item["note"]["S"] for item in world.raw() if "note" in item} == {f"note {each}" for each in range(5)}


@pytest.mark.parametrize("lost", ["all slots", "one slot"])
def test_wrong_counts_are_corrected(world: World, lost: str) -> None:
    followed(world)
    slots = [item for item in world.raw() if "count" in item and item["way"]["S"] == "FANNED_BY"]
    for item in slots[: None if lost == "all slots" else 1]:
        world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})

    drift = repair_of(world).repair(TENANT, ACTOR)

    assert drift.mended
    assert drift.counted["FANNED_BY"].off < 0
    assert edges_of(world).count(TENANT, ACTOR, "backward") == 5
    agree(world)


@pytest.mark.parametrize("declared", [FANS, replace(FANS, counts=None)], ids=["counted", "not counted"])
@pytest.mark.parametrize(("node", "kept"), [(ACTOR, 4), ("User.1", 0)])
def test_halves_that_do_not_fit_are_named_and_neither_missing_nor_counted_off(
    world: World, declared: Edges[Any], node: str, kept: int
) -> None:
    fans = edges_of(world, declared)
    for number in range(5):
        fans.add(TENANT, f"User.{number}", ACTOR)
    unfit = UnfitRows(world.inner, world.table)
    [half] = [edge for edge in fans.scan(TENANT, ACTOR, "backward") if edge.other == "User.1"]
    odd = unfit.spoil_one(half, "since")
    before = world.raw()

    found, mended = repair_of(world, declared).check(TENANT, node), repair_of(world, declared).repair(TENANT, node)

    for drift in (found, mended):
        assert ([each.sort_key for each in drift.undecodable], drift.halves, drift.counted) == ([odd], {}, {})
    assert mended.mended
    assert world.raw() == before
    assert len(list(fans.scan(TENANT, node, "backward"))) == kept


def test_a_count_is_not_set_while_edges_are_added(world: World) -> None:
    followed(world, 2)
    fans = edges_of(world)
    fans.add(TENANT, USER, ACTOR)
    slots = [item for item in world.raw() if "count" in item and item["way"]["S"] == "FANNED_BY"]
    world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": slots[0]["PK"], "SK": slots[0]["SK"]})
    sent = world.faults(
        meanwhile("TransactWriteItems", lambda: fans.add(TENANT, "User.new", ACTOR)),
        meanwhile("TransactWriteItems", lambda: fans.remove(TENANT, USER, ACTOR), nth=2),
    )

    drift = repair_of(world).repair(TENANT, ACTOR)

    assert sent.sent("TransactWriteItems") == 3
    assert drift.mended
    agree(world)


def test_a_node_is_not_mended_if_only_its_second_counter_could_be_set(world: World) -> None:
    fans = edges_of(world)
    fans.add(TENANT, USER, ACTOR)
    slots = [item for item in world.raw() if "count" in item and item["way"]["S"] == "FAN_OF"]
    world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": slots[0]["PK"], "SK": slots[0]["SK"]})
    names = (f"Actor.new{number}" for number in range(9))
    world.faults(meanwhile("TransactWriteItems", lambda: fans.add(TENANT, USER, next(names)), nth=None))

    drift = repair_of(world).repair(TENANT, USER)

    assert (drift.mended, list(drift.counted)) == (False, ["FAN_OF"])


def test_a_node_is_not_mended_if_only_its_second_half_could_be_written(world: World) -> None:
    fans = edges_of(world, replace(FANS, counts=None))
    for number in range(2):
        fans.add(TENANT, f"User.{number}", ACTOR)
    take(world, "FAN_OF.Actor.5")
    there = world.raw()

    def come_back() -> None:
        for item in there:
            world.dynamodb.call("PutItem", TableName=world.table, Item=item)

    gone = meanwhile("TransactWriteItems", lambda: take(world, *(item["SK"]["S"] for item in there)))
    world.faults(gone, meanwhile("TransactWriteItems", come_back, nth=2))

    drift = repair_of(world, replace(FANS, counts=None)).repair(TENANT, ACTOR)

    assert (drift.mended, len(drift.halves)) == (False, 2)


def test_an_edge_that_only_the_first_of_two_scans_still_shows_is_not_counted(world: World) -> None:
    followed(world, 3)
    [gone] = [item for item in world.raw() if item["SK"]["S"] == "FANNED_BY.User.1"]
    edges_of(world).remove(TENANT, "User.1", ACTOR)
    looks = count(1)

    def half_visible(send: Send, request: Mapping[str, Any]) -> Wire:
        answer, values = send(request), request["ExpressionAttributeValues"].values()
        mine = gone["PK"] in values and any(each["S"].startswith("FANNED_BY") for each in values)
        # The first look is for halves, and then the edges are counted twice.
        return {**answer, "Items": [*answer["Items"], gone]} if mine and next(looks) == 2 else answer

    world.faults(Fault("Query", half_visible, nth=None))

    drift = repair_of(world).repair(TENANT, ACTOR)

    assert (drift.none, next(looks)) == (True, 6)
    agree(world)


def test_edges_that_keep_changing_are_reported_and_not_repaired(world: World) -> None:
    followed(world, 2)
    fans = edges_of(world)
    slots = [item for item in world.raw() if "count" in item and item["way"]["S"] == "FANNED_BY"]
    world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": slots[0]["PK"], "SK": slots[0]["SK"]})
    names = (f"User.new{number}" for number in range(9))
    world.faults(meanwhile("TransactWriteItems", lambda: fans.add(TENANT, next(names), ACTOR), nth=None))

    drift = repair_of(world).repair(TENANT, ACTOR)

    assert not drift.mended
    assert drift.counted["FANNED_BY"].off == -1


def test_a_half_is_not_written_for_an_edge_removed_meanwhile(world: World) -> None:
    followed(world, 1)
    take(world, "FANNED_BY.User.0")
    fans = edges_of(world)
    world.faults(meanwhile("TransactWriteItems", lambda: fans.remove(TENANT, "User.0", ACTOR)))

    repair_of(world).repair(TENANT, "User.0")

    assert fans.find(TENANT, "User.0", ACTOR) is None
    assert [item for item in world.raw() if "other" in item] == []


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.MOVE, Phase.SETTLE])
def test_edges_are_added_removed_and_repaired_while_shards_change(world: World, phase: Phase) -> None:
    """All nodes change from 2 to 8 shards. No mover runs, so all edges are new."""
    world.views.now = View(2, phase, 8, markers=True)
    world.views.view = _unsharded_counters(world.views.view)  # type: ignore[method-assign]
    followed(world)
    fans = edges_of(world)

    assert not fans.add(TENANT, "User.1", ACTOR).created
    fans.remove(TENANT, "User.1", ACTOR)
    assert fans.add(TENANT, "User.1", ACTOR).created
    fans.remove(TENANT, "User.2", ACTOR)

    assert fans.count(TENANT, ACTOR, "backward") == 4
    assert sorted(edge.other for edge in fans.scan(TENANT, ACTOR, "backward")) == [f"User.{n}" for n in (0, 1, 3, 4)]
    assert repair_of(world).check(TENANT, ACTOR).none


def _unsharded_counters(view: Any) -> Any:
    return lambda entity, partition: view(entity, partition) if entity.shards else View(0)
