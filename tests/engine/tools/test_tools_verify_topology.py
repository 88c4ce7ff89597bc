"""`dynashard verify` names damaged topology records, and compares nothing by them."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from domain.samples.follows import FOLLOWS
from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS
from domain.samples.plays import PLAYS
from domain.samples.users import User
from dynashard import Entity, definition
from dynashard.repository import RetryPolicy
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.topology import TopologyTable, family_of
from dynashard.transport.interface import Wire
from dynashard_tools.verify.topology import damage_of
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.verify_world import (
    TENANT,
    backend,
    leave_an_attachment,
    lose_a_copy,
    lose_a_user,
    lose_half_an_edge,
    lower_a_roll_up,
    report,
)

pytestmark = pytest.mark.engine

USERS: Final = "user.v1.User"


def epochs(*entries: tuple[str, int, str]) -> Wire:
    """Return a stored history of epochs."""
    return {
        "epochs": {"L": [{"M": {"first": {"S": f}, "count": {"N": str(c)}, "state": {"S": s}}} for f, c, s in entries]}
    }


DAMAGED: Final[dict[str, tuple[Wire, str]]] = {
    "no count": ({"number_of_shards": None}, "KeyError 'number_of_shards'"),
    "a text for a count": ({"number_of_shards": {"S": "16"}}, "cannot be used"),
    "no number": ({"number_of_shards": {"N": "16.5"}}, "cannot be used"),
    "too many": ({"number_of_shards": {"N": "4096"}}, "4096 shards"),
    "no power of two": ({"number_of_shards": {"N": "12"}}, "12 is not a shard count, which is a power of two"),
    "a target that is none": ({"target": {"N": "24"}}, "24 is not a shard count, which is a power of two"),
    "a former count that is none": ({"former_counts": {"NS": ["3"]}}, "3 is not a shard count"),
    "an unknown phase": ({"phase": {"S": "dreaming"}}, "'dreaming' is not a valid Phase"),
    "a list for a history": ({"shard_history": {"L": []}}, "cannot be used"),
    "a history without times": (
        {"shard_history": {"SS": ["16"]}},
        "its history has 16, which is not a time with",
    ),
    "a digit without a number": (
        {"shard_history": {"SS": ["\N{SUPERSCRIPT TWO}:16"]}},
        "its history has \N{SUPERSCRIPT TWO}:16",
    ),
    "a count of its history": ({"shard_history": {"SS": ["5:16", "4:9"]}}, "its history has 4:9"),
    "two counts at once": ({"shard_history": {"SS": ["5:8", "5:16"]}}, "its history has 2 counts since 5"),
    "another newest count": (
        {"shard_history": {"SS": ["5:16", "7:8"]}},
        "its count is 16, and the newest one of its history 8",
    ),
    "epochs out of order": (epochs(("", 4, "confirmed"), ("b", 8, "confirmed"), ("a", 16, "pending")), "no history of"),
    "a count of an epoch": (
        {**epochs(("", 6, "void"), ("b", 16, "confirmed")), "phase": {"S": "epochs"}},
        "6 is not a shard count",
    ),
    "a text for backfills": (
        {"backfilled": {"S": "all"}},
        "of backfills is 'all', which is not a mapping",
    ),
    "a text for a resize": ({"change": {"S": "soon"}}, "what it says of resize is 'soon', which is not a mapping"),
}


def damage(world: ReshardWorld, key: str, changed: Wire) -> None:
    """Change attributes of a record as another program would; None removes one."""
    request: dict[str, Any] = {"TableName": world.topology_table, "Key": {"partition": {"S": key}}}
    found = world.wire.call("GetItem", {**request, "ConsistentRead": True}).get("Item", {"partition": {"S": key}})
    item = {name: value for name, value in {**found, **changed}.items() if value is not None}
    world.wire.call("PutItem", {"TableName": world.topology_table, "Item": item})


def records(world: ReshardWorld) -> list[Wire]:
    found: list[Wire] = world.wire.call("Scan", {"TableName": world.topology_table, "ConsistentRead": True})["Items"]
    return sorted(found, key=lambda each: str(each["partition"]))


@pytest.mark.parametrize(("changed", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_named_and_stays(world: ReshardWorld, changed: Wire, reason: str) -> None:
    world.layer().collection(User).create(tenant_id=TENANT, email="a@example.com", display_name="Ada")
    damage(world, USERS, changed)
    before = records(world)

    status, found = report(world, "--only", "topology", "--mend")

    assert (status, found["found"], found["mended"]) == (4, {"topology": 1}, {})
    [finding] = found["findings"]
    assert finding["where"] == USERS
    assert reason in finding["detail"]
    assert records(world) == before


def test_nothing_of_a_family_with_a_damaged_record_is_compared_or_mended(world: ReshardWorld) -> None:
    backend(world)
    lose_a_user(world)
    everything = world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    users = sum(item["PK"]["S"].startswith(f"{USERS}:") for item in everything)
    _, right = report(world, "incidents")
    damage(world, USERS, {"number_of_shards": {"N": "12"}})

    status, found = report(world, "--mend")
    alone, of_users = report(world, "users", "--only", "items")
    printed = world.run("verify").out
    _, others = report(world, "incidents")

    assert (status, found["found"], found["mended"]) == (4, {"topology": 1}, {})
    assert (found["without_counts"], found["others"]) == (users, 0)
    assert (alone, of_users["found"], of_users["items"]) == (4, {"topology": 1}, 0)
    assert f"{users:,} rows were not judged, because a topology record of their family is damaged" in printed
    assert (others["found"], others["items"]) == ({}, right["items"])
    assert world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"] == everything


@pytest.mark.parametrize(
    ("key", "count"),
    [(f"{USERS}:{TENANT}", 3), (f"{USERS}|GSI2", 3), ("gone.v1.Gone", 4096), ("gone.v1.Gone|GSI1", 3)],
)
def test_records_of_partitions_of_indexes_and_of_other_entities_are_judged(
    world: ReshardWorld, key: str, count: int
) -> None:
    backend(world)
    damage(world, key, {"number_of_shards": {"N": str(count)}, "last_updated": {"N": "1"}})

    status, found = report(world)
    _, of_incidents = report(world, "incidents")

    assert (status, found["found"]) == (4, {"topology": 1})
    assert found["findings"][0]["where"] == key
    assert (found["without_counts"] > 0) is key.startswith(USERS)
    assert of_incidents["found"] == {}


def test_records_that_are_right_are_counted_and_progress_is_not(world: ReshardWorld) -> None:
    db = world.layer()
    db.collection(User).create(tenant_id=TENANT, email="a@example.com", display_name="Ada")
    db.collection(Incident).create(tenant_id=TENANT, number=1, title="Fire")
    world.wire.call("PutItem", {"TableName": world.topology_table, "Item": {"partition": {"S": "@0@x"}}})
    table = TopologyTable(world.wire, world.topology_table)
    assert table.find(USERS) is not None

    status, found = report(world, "--only", "topology")
    printed = world.run("verify", "--only", "topology").out

    number = len(records(world)) - 1
    without = world.run("verify", "pings", TENANT, "--day", "2026-11-27").out
    assert (status, found["found"], found["items"]) == (0, {}, 0)
    assert found["compared"] == {"topology": number}
    assert printed.startswith(f"{number} topology records: 0 found wrong; ")
    assert without.startswith("0 items: 0 found wrong; ")


def test_counts_of_modulo_need_not_be_powers_of_two_but_those_of_its_indexes(world: ReshardWorld) -> None:
    counts = {
        "old.v1.Log": 12,
        "old.v1.Log:a|b": 7,
        "old.v1.Log|GSI1": 12,
        "old.v1.Log:xyz": 4096,
        "gone.v1.Log:abc": 7,
    }
    for key, count in counts.items():
        history = {"shard_history": {"SS": [f"5:{count}"]}}
        damage(world, key, {"number_of_shards": {"N": str(count)}, **history})

    found = damage_of(world.wire, world.topology_table, {"old.v1.Log": False}, RetryPolicy().pauses)

    assert found.problems.keys() == {"old.v1.Log|GSI1", "old.v1.Log:xyz"}
    assert found.families == {"old.v1.Log"}


def test_a_page_that_is_throttled_is_read_again(world: ReshardWorld) -> None:
    damage(world, USERS, {"number_of_shards": {"N": "3"}})
    wire = FaultyTransport(world.wire, [throttled("Scan")])

    found = damage_of(wire, world.topology_table, {USERS: True}, lambda: iter([0.0]))

    assert found.families == {USERS}
    assert [call.request["ConsistentRead"] for call in wire.calls] == [True, True]


@pytest.mark.parametrize(
    ("fault", "model"),
    [
        (lose_a_copy, PARTICIPATIONS.of),
        (lose_a_copy, PARTICIPATIONS.copy),
        (lose_half_an_edge, FOLLOWS.model),
        (lose_half_an_edge, FOLLOWS.counts),
        (lower_a_roll_up, PLAYS.of),
        (lower_a_roll_up, next(iter(PLAYS.into))),
        (leave_an_attachment, Incident),
    ],
)
def test_nothing_that_is_derived_by_a_damaged_record_is_compared_or_mended(
    world: ReshardWorld, fault: Callable[[ReshardWorld], None], model: type[Entity]
) -> None:
    backend(world)
    fault(world)
    damage(world, family_of(definition(model)), {"number_of_shards": {"N": "4096"}})
    before = world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]

    status, found = report(world, "--mend")

    assert (status, found["found"], found["mended"]) == (4, {"topology": 1}, {})
    assert world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"] == before
