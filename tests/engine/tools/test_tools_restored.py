"""Restored tables: `verify` checks them before they are used, and a resize that was under way continues."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.samples.audit import AccessAction, OrderedAccess
from domain.samples.users import User
from dynashard import definition
from dynashard.resharding import Scope
from tests.engine.tools.reshard_world import ReshardWorld

pytestmark = pytest.mark.engine

TENANT = "abc"
SCOPE = Scope(definition(User), f"user.v1.User:{TENANT}")
COPY = "-Restored"


def fill(world: ReshardWorld, *ids: str) -> None:
    users = [User(tenant_id=TENANT, id=each, email=f"{each}@example.com", display_name=each) for each in ids]
    world.layer().collection(User).batch_write(put=users)


def ids(world: ReshardWorld) -> list[str]:
    return sorted(user.id for user in world.layer().collection(User).list({"tenant_id": TENANT}, limit=100).items)


def copied(world: ReshardWorld, table: str) -> None:
    """Copy a table as it is now, as a restore does: items and indexes, without a stream."""
    described = world.wire.call("DescribeTable", {"TableName": table})["Table"]
    names = ("AttributeDefinitions", "KeySchema")
    indexes = [
        {key: index[key] for key in ("IndexName", "KeySchema", "Projection")}
        for index in described.get("GlobalSecondaryIndexes", [])
    ]
    world.wire.call("CreateTable", {
        "TableName": f"{table}{COPY}",
        "BillingMode": "PAY_PER_REQUEST",
        **{name: described[name] for name in names},
        **({"GlobalSecondaryIndexes": indexes} if indexes else {}),
    })  # fmt: skip
    for item in world.wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]:
        world.wire.call("PutItem", {"TableName": f"{table}{COPY}", "Item": item})


def restored(world: ReshardWorld) -> ReshardWorld:
    """The same stack on the restored tables."""
    names = {"RESTORED_TABLE": f"{world.table}{COPY}", "RESTORED_TOPOLOGY": f"{world.topology_table}{COPY}"}
    command_line = replace(world.command_line, environment={**world.command_line.environment, **names})
    tables: dict[str, Any] = {"table": f"{world.table}{COPY}", "topology_table": f"{world.topology_table}{COPY}"}
    return replace(world, command_line=command_line, **tables)


@contextmanager
def moving(world: ReshardWorld) -> Iterator[None]:
    """Bring a resize of the tenant's count to where a part of its items has moved."""
    world.resharder().start(SCOPE, 64, survey=False)
    world.bring_to(SCOPE, "move")
    for _ in range(40):
        world.nibble(SCOPE.key)
        if world.resharder().status(SCOPE).moved >= 2:
            break
    assert world.resharder().status(SCOPE).stage == "move"
    yield
    world.bring_to(SCOPE, "stable")


BEFORE = [f"u{number:02}" for number in range(30)]


def test_tables_of_one_moment_continue_the_resize_that_was_under_way(world: ReshardWorld) -> None:
    fill(world, *BEFORE)
    with moving(world):
        copied(world, world.table)
        copied(world, world.topology_table)
        fill(world, "written-later")
    back = restored(world)

    assert ids(back) == BEFORE
    while_changing = back.run("verify", "users", TENANT)
    back.bring_to(SCOPE, "stable")
    afterwards = back.run("verify")

    # A changing partition is left out, which is not success.
    assert while_changing.status == 4
    assert (afterwards.status, afterwards.err) == (0, "")
    assert back.resharder().status(SCOPE).count == 64
    assert ids(back) == BEFORE
    assert ids(world) == sorted([*BEFORE, "written-later"])


def test_tables_of_two_moments_are_reported_and_repaired(world: ReshardWorld) -> None:
    fill(world, *BEFORE)
    copied(world, world.topology_table)
    with moving(world):
        copied(world, world.table)
    back = restored(world)

    reported = back.run("verify", "users", TENANT)
    repaired = back.run("verify", "users", TENANT, "--mend")
    clean = back.run("verify")

    assert (reported.status, repaired.status, clean.status) == (4, 0, 0)
    assert back.resharder().status(SCOPE).count == 16
    assert ids(back) == BEFORE


def test_one_restored_table_without_the_other_is_refused(world: ReshardWorld) -> None:
    environment = {**world.command_line.environment, "RESTORED_TABLE": "table-back"}

    ended = replace(world.command_line, environment=environment).run("verify")

    assert ended.status == 1
    assert "set both RESTORED_TABLE and RESTORED_TOPOLOGY, or neither" in ended.err


LOG = Scope(definition(OrderedAccess), f"audit.v1.OrderedAccess:{TENANT}:/a")
LOG_FIELDS = {"tenant_id": TENANT, "path": "/a"}


def log(world: ReshardWorld, *ids: str) -> list[str]:
    """Write accesses to a file, of now; return their ids."""
    items = world.layer().collection(OrderedAccess)
    for each in ids:
        at = datetime.fromtimestamp(world.clock(), UTC)
        items.create(**LOG_FIELDS, accessed_at=at, id=each, action=AccessAction.READ, user_id="ada")
    return list(ids)


def found(world: ReshardWorld) -> list[str]:
    """Return the ids of all accesses that a listing has, and that are found by their keys as well."""
    items = world.layer().collection(OrderedAccess)
    listed = [item for page in items.pages(LOG_FIELDS, order="ordered", limit=7) for item in page.items]
    by_key = [item.id for item in items.batch_get(listed) if item is not None]
    assert by_key == [item.id for item in listed]
    return by_key


def grow(world: ReshardWorld, to: int) -> None:
    world.resharder().start(LOG, to)
    world.bring_to(LOG, "stable")
    world.pass_by(1.0)


def test_a_table_of_an_earlier_moment_is_right_under_a_later_history_of_epochs(world: ReshardWorld) -> None:
    before = log(world, *BEFORE[:10])
    grow(world, 4)
    before += log(world, *BEFORE[10:20])
    copied(world, world.table)
    grow(world, 16)
    log(world, "written-later")
    copied(world, world.topology_table)
    back = restored(world)

    assert found(back) == before
    verified = back.run("verify", "ordered-accesses", f"{TENANT}:/a")
    assert (verified.status, verified.err) == (0, "")
    assert found(back) + log(back, "after") == found(back)


@pytest.mark.parametrize("stage", ["pending", "confirmed"])
def test_tables_of_a_moment_before_an_epoch_begins_continue_its_resize(world: ReshardWorld, stage: str) -> None:
    before = log(world, *BEFORE[:10])
    grow(world, 4)
    before += log(world, *BEFORE[10:20])
    world.resharder().start(LOG, 16)
    world.bring_to(LOG, stage)
    before += log(world, *BEFORE[20:])
    copied(world, world.table)
    copied(world, world.topology_table)
    world.bring_to(LOG, "stable")
    log(world, "written-later")
    back = restored(world)

    assert found(back) == before
    back.bring_to(LOG, "stable")
    back.pass_by(1.0)
    before += log(back, *(f"after{number}" for number in range(20)))

    assert found(back) == before
    assert back.run("verify", "ordered-accesses", f"{TENANT}:/a").status == 0
    assert back.resharder().status(LOG).count == 16
    assert "written-later" in found(world)


def test_a_history_that_lacks_epochs_of_the_table_is_reported_and_repaired(world: ReshardWorld) -> None:
    before = log(world, *BEFORE[:10])
    copied(world, world.topology_table)
    grow(world, 16)
    before += log(world, *BEFORE[10:])
    copied(world, world.table)
    back = restored(world)

    reported = back.run("verify")
    repaired = back.run("verify", "--mend")

    assert (reported.status, repaired.status) == (4, 0)
    assert back.resharder().status(LOG).count == 1
    assert found(back) == before
