"""A backend with items of every kind, and faults that are planted in it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from domain.samples.follows import FOLLOWS
from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS
from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from domain.samples.users import User
from dynashard import Dynashard, definition
from dynashard.transport.interface import Wire
from dynashard_patterns import EdgeStore
from dynashard_patterns.rollups import ItemCounter
from tests.engine.tools.reshard_world import ReshardWorld

TENANT: Final = "abc"
YESTERDAY: Final = (datetime.now(UTC) - timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
"""The day of pings: the first minutes of today may be in the future."""


def report(world: ReshardWorld, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Verify; return the exit status and the report."""
    outcome = world.run("verify", *arguments, "--json")
    assert outcome.err.startswith("--mend may ") if "--mend" in arguments else outcome.err == "", outcome.err
    return outcome.status, orjson.loads(outcome.out)


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
    of = {"tenant_id": TENANT, "series": "dark", "episode": "e1", "session_id": "s"}
    pings = [Ping(**of, at=YESTERDAY + timedelta(minutes=n), id=f"p{n}") for n in range(5)]
    db.collection(Ping).batch_write(put=pings)
    ItemCounter(db, PLAYS).count(pings)
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
