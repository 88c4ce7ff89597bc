"""`dynashard verify`: each kind of fault in a backend is planted, reported, repaired, and not found again."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from domain.samples.follows import FOLLOWS
from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS
from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from domain.samples.users import User
from dynashard import Dynashard, definition
from dynashard.resharding import Scope
from dynashard.transport.interface import Wire
from dynashard_patterns import EdgeStore
from dynashard_patterns.rollups import Counter
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world

pytestmark = pytest.mark.engine

TENANT: Final = "abc"
TODAY: Final = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    with reshard_world(tmp_path, monkeypatch, capsys) as made:
        yield made


def backend(world: ReshardWorld) -> Dynashard:
    """Fill a backend with items of every kind, without a fault."""
    db = world.layer()
    db.collection(User).batch_write(
        put=[User(tenant_id=TENANT, email=f"u{n}@example.com", display_name=f"User {n}") for n in range(20)]
    )
    incident = db.collection(Incident).create(
        Incident(tenant_id=TENANT, number=1, title="Fire", participants=["user_ada"], team="team_x", details=[1] * 500)
    )
    PARTICIPATIONS.materializer(db).carry({"tenant_id": TENANT, "id": incident.id})
    edges = EdgeStore.on(db, FOLLOWS)
    for n in range(3):
        edges.add(TENANT, f"User.{n}", "Actor.5")
    pings = [
        Ping(tenant_id=TENANT, series="dark", episode="e1", at=TODAY + timedelta(minutes=n), id=f"p{n}", session_id="s")
        for n in range(5)
    ]
    db.collection(Ping).batch_write(put=pings)
    Counter(db, PLAYS).count(pings)
    return db


def stored(world: ReshardWorld, chosen: Callable[[Wire], bool]) -> Wire:
    """Return the first stored item that is chosen."""
    for item in world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]:
        if chosen(item):
            return dict(item)
    raise AssertionError("there is none")


def typed(name: str) -> Callable[[Wire], bool]:
    return lambda item: bool(item.get("Type", {}).get("S") == name)


def delete(world: ReshardWorld, item: Wire) -> None:
    key = {"PK": item["PK"], "SK": item["SK"]}
    world.wire.call("DeleteItem", {"TableName": world.table, "Key": key})


def put(world: ReshardWorld, item: Wire) -> None:
    world.wire.call("PutItem", {"TableName": world.table, "Item": item})


def lose_a_user(world: ReshardWorld) -> None:
    """Move a user to another shard than its home."""
    item = stored(world, typed("user.v1.User"))
    delete(world, item)
    partition, _, shard = item["PK"]["S"].rpartition(":")
    put(world, {**item, "PK": {"S": f"{partition}:{(int(shard) + 1) % 16}"}})


def leave_a_marker(world: ReshardWorld) -> None:
    put(world, {"PK": {"S": "user.v1.User:abc:3"}, "SK": {"S": "somebody"}, "MovedTo": {"N": "32"}})


def spoil_an_index(world: ReshardWorld) -> None:
    item = stored(world, lambda each: typed("user.v1.User")(each) and "GSI1PK" in each)
    put(world, {**item, "GSI1SK": {"S": "nobody@example.com"}})


def lose_a_copy(world: ReshardWorld) -> None:
    delete(world, stored(world, typed(definition(PARTICIPATIONS.copy).name)))


def lose_half_an_edge(world: ReshardWorld) -> None:
    delete(world, stored(world, lambda each: each["SK"]["S"] == "FANNED_BY.User.1"))


def miscount(world: ReshardWorld) -> None:
    item = stored(world, lambda each: typed("follow.v1.Count")(each) and "Actor.5" in each["PK"]["S"])
    put(world, {**item, "count": {"N": str(int(item["count"]["N"]) + 7)}, "Rev": {"S": "wrong"}})


def lower_a_roll_up(world: ReshardWorld) -> None:
    item = stored(world, lambda each: typed("plays.v1.Episode")(each) and each["SK"]["S"].startswith("day"))
    put(world, {**item, "pings": {"N": "0"}, "Rev": {"S": "wrong"}})


def leave_an_attachment(world: ReshardWorld) -> None:
    """Leave a version that no item points to, older than any running writer."""
    manifest = stored(world, lambda each: each["SK"]["S"].startswith("m#"))
    old = {**manifest, "SK": {"S": "m#old"}, "Since": {"N": "1000"}, "GSI3SK": {"S": f"{manifest['GSI3SK']['S']}old"}}
    put(world, old)


FAULTS: Final[dict[str, Callable[[ReshardWorld], None]]] = {
    "away": lose_a_user,
    "marker": leave_a_marker,
    "index": spoil_an_index,
    "count": miscount,
    "copy": lose_a_copy,
    "edge": lose_half_an_edge,
    "roll_up": lower_a_roll_up,
    "leftover": leave_an_attachment,
}


def report(world: ReshardWorld, *arguments: str) -> tuple[int, dict[str, Any]]:
    outcome = world.run("verify", *arguments, "--json")
    assert outcome.err.startswith("--mend may ") if "--mend" in arguments else outcome.err == "", outcome.err
    return outcome.status, json.loads(outcome.out)


def test_every_kind_of_fault_is_reported_repaired_and_not_found_again(world: ReshardWorld) -> None:
    backend(world)
    status, right = report(world)
    assert (status, right["found"], right["findings"]) == (0, {}, [])
    assert right["items"] > 30

    for kind, plant in FAULTS.items():
        plant(world)
        checked = report(world)
        mended = report(world, "--mend")
        assert (checked[0], checked[1]["found"].get(kind, 0) > 0, checked[1]["mended"]) == (3, True, {}), (
            kind,
            checked,
        )
        # Half an edge also makes the count of its node wrong. The previous fault was repaired.
        assert set(checked[1]["found"]) <= {kind, *(["count"] if kind == "edge" else [])}, (kind, checked)
        assert (mended[0], mended[1]["mended"]) == (0, checked[1]["found"]), (kind, mended)

    again = report(world)
    assert (again[0], again[1]["found"]) == (0, {})


def test_an_incomplete_attachment_is_reported_and_cannot_be_repaired(world: ReshardWorld) -> None:
    backend(world)
    delete(world, stored(world, lambda each: each["SK"]["S"].startswith("p#")))

    checked, mended = report(world), report(world, "--mend")

    assert [each["kind"] for each in checked[1]["findings"]] == ["attachment"]
    assert (checked[0], mended[0], mended[1]["mended"]) == (3, 3, {})


def test_one_partition_is_verified_by_itself(world: ReshardWorld) -> None:
    db = backend(world)
    db.collection(User).create(User(tenant_id="other", email="a@example.com", display_name="A"))
    lose_a_user(world)

    mine, theirs = report(world, "users", "abc"), report(world, "users", "other")
    whole = report(world, "users")

    assert (mine[0], mine[1]["found"], mine[1]["items"]) == (3, {"away": 1}, 20)
    assert (theirs[0], theirs[1]["found"], theirs[1]["items"]) == (0, {}, 1)
    assert (whole[0], whole[1]["items"]) == (3, 21)


def test_findings_are_printed_in_words(world: ReshardWorld) -> None:
    backend(world)
    lose_a_user(world)

    checked = world.run("verify", "users", "abc")
    mended = world.run("verify", "users", "abc", "--mend", "--read-units", "100000")
    right = world.run("verify", "users", "abc")

    assert (checked.status, mended.status, right.status) == (3, 0, 0)
    assert "away: user.v1.User:abc:" in checked.out
    assert "its home is user.v1.User:abc:" in checked.out
    assert "20 items: 1 found wrong; " in checked.out
    assert "(mended)" in mended.out
    assert "1 found wrong, 1 mended" in mended.out
    assert "20 items: 0 found wrong" in right.out


def test_a_running_change_is_reported_and_the_rest_is_verified(world: ReshardWorld) -> None:
    backend(world)
    scope = Scope(definition(User), "user.v1.User:abc")
    world.resharder().start(scope, 32)
    world.bring_to(scope, "move")

    outcome = world.run("verify", "users", "abc")

    assert outcome.status == 3
    assert "user.v1.User:abc is changing its shard count" in outcome.out
    assert "20 items: 0 found wrong" in outcome.out
    world.bring_to(scope, "stable")
    assert world.run("verify", "users", "abc").status == 0


def test_wrong_arguments_are_one_line(world: ReshardWorld) -> None:
    unknown, parts = world.run("verify", "nobody"), world.run("verify", "users", "a:b")

    assert (unknown.status, parts.status) == (1, 1)
    assert "no entity is called 'nobody'" in unknown.err
    assert "has 2 parts" in parts.err
