"""Backfills: all items of earlier versions are migrated, and all entries of an index written; killed ones go on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dynashard import Index, Key, Registry, Shards, definition
from dynashard.backfills import Backfill, Options, Report
from dynashard.entity import Entity
from dynashard.errors import NotFoundError
from dynashard.resharding import Scope
from dynashard.testing.faults import FaultyTransport, lost_answer
from dynashard.transport import Transport
from dynashard_checks.changed_models.entities import TENANT, NewPart, divided
from tests.engine.backfills.backfill_world import backfill_of, filled
from tests.engine.resharding.resharding_world import Moving, moving_world

pytestmark = pytest.mark.engine

PART = {"tenant": TENANT}
FAST = Options(workers=1, tasks=2, chunk=10, write_units=1e6, read_units=1e6)


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def backfill(
    world: Moving,
    kind: str = "migrate",
    transport: Transport | None = None,
    model: type[Entity] = NewPart,
    beside: type[Entity] | None = None,
    **options: Any,
) -> Backfill:
    wire, chosen = transport or world.inner, replace(FAST, **options)
    return backfill_of(world, kind, wire, chosen, model=model, beside=beside)


def begun(world: Moving, *, kind: str = "migrate", model: type[Entity] = NewPart) -> Report:
    """Run a backfill that is killed after its first report."""
    stopped: list[Report] = []
    slow = backfill(world, kind, model=model, seconds=0.01, write_units=100.0)
    return slow.run(stopped.append, lambda: bool(stopped))


def versions(world: Moving) -> list[str]:
    return [item.get("Ver", {}).get("N", "1") for item in world.raw()]


def test_a_migration_stores_all_items_in_the_present_form_and_changes_no_field(world: Moving) -> None:
    filled(world, 45)
    before = {item.id: item.model_dump() for item in world.of(NewPart).list(PART, limit=100)}

    report = backfill(world).run()

    assert (report.complete, report.written, report.left, report.rounds) == (True, 45, 0, 1)
    assert set(versions(world)) == {"2"}
    assert all("name" not in item for item in world.raw())
    after = {item.id: item.model_dump() for item in world.of(NewPart).list(PART, limit=100)}
    assert after == before
    assert [each.id for each in world.of(NewPart).list(PART, index="by_last", limit=100, order="ordered")] == sorted(
        after
    )
    assert backfill(world).run().written == 0
    assert world.progress_items() == []


def test_a_migration_that_was_killed_goes_on_where_it_was(world: Moving) -> None:
    filled(world, 45)

    first = begun(world)
    written = versions(world).count("2")
    then = backfill(world).run()

    assert 0 < written < 45
    assert not first.complete
    assert (then.complete, then.written) == (True, 45)
    assert set(versions(world)) == {"2"}


@pytest.mark.parametrize("damage", ["REMOVE tasks", "SET tasks = goal"])
def test_a_migration_whose_state_is_damaged_begins_again(world: Moving, damage: str) -> None:
    filled(world, 45)
    begun(world)
    keys = [item["partition"] for item in world.progress_items()]
    [key] = [each for each in keys if each["S"].startswith("@backfill@")]
    call = {"TableName": world.topology, "Key": {"partition": key}, "UpdateExpression": damage}
    world.inner.call("UpdateItem", call)

    report = backfill(world).run()

    assert report.complete
    assert set(versions(world)) == {"2"}
    assert world.progress_items() == []


def test_a_lost_answer_of_a_migration_does_no_harm(world: Moving) -> None:
    filled(world, 12)
    faulty = FaultyTransport(world.inner, [lost_answer("UpdateItem", nth=3)])

    report = backfill(world, transport=faulty).run()

    assert report.complete
    assert not faulty.waiting
    assert sorted(each.amount for each in world.of(NewPart).list(PART)) == list(range(12))


def test_a_migration_that_waits_for_a_resize_can_be_stopped(world: Moving) -> None:
    filled(world, 4)
    resharder = world.on(world.inner, entities=[NewPart])
    resharder.start(Scope(definition(NewPart)), 8)
    reports: list[Report] = []

    report = backfill(world).run(reports.append, lambda: len(reports) >= 2)

    assert [each.waiting for each in reports] == [True, True]
    assert not report.complete
    assert set(versions(world)) == {"1"}


def test_items_that_move_meanwhile_are_migrated_in_another_round(world: Moving) -> None:
    filled(world, 40)
    resharder = world.on(world.inner, entities=[NewPart])
    moved = Scope(definition(NewPart))

    def resize(_: Report) -> None:
        if resharder.status(moved).count == 2:
            resharder.start(moved, 8)
            world.finish(moved, resharder)

    report = backfill(world, seconds=0.01, write_units=100.0).run(resize)

    assert report.complete
    assert report.rounds > 1
    assert set(versions(world)) == {"2"}
    assert len(world.of(NewPart).list(PART, limit=100)) == 40


def test_a_migration_is_not_complete_if_an_item_cannot_be_upgraded(world: Moving) -> None:
    filled(world, 5)
    [item, *_] = world.raw()
    world.put({**item, "amount": {"S": "many"}})

    report = backfill(world).run()

    assert (report.complete, report.written, report.left) == (False, 4, 1)
    assert "many" in report.unfit[0].problem
    assert versions(world).count("1") == 1


@pytest.mark.parametrize("kind", ["migrate", "by_amount"])
@pytest.mark.parametrize("lacking", [{"Type", "Rev"}, {"Type"}, {"Rev"}], ids=sorted)
def test_a_backfill_leaves_and_names_what_the_layer_has_not_written(
    world: Moving, kind: str, lacking: set[str]
) -> None:
    filled(world, 5)
    [item, *_] = world.raw()
    theirs = {name: value for name, value in item.items() if name not in lacking}
    world.put(theirs)

    report = backfill(world, kind).run()

    assert (report.written, report.left) == (4, 1)
    assert report.unfit[0].problem.startswith("it has no ")
    assert theirs in world.raw()


def test_an_index_says_that_it_may_lack_items_until_it_is_built_and_all_are_migrated(world: Moving) -> None:
    filled(world, 30)
    things = world.of(NewPart)
    before = things.list(PART, index="by_amount", limit=100)

    built = backfill(world, "by_amount").run()
    half = world.of(NewPart).list(PART, index="by_amount", limit=100)
    backfill(world).run()
    after = world.of(NewPart).list(PART, index="by_amount", limit=100, order="ordered")

    assert (before.items, before.complete) == ([], False)
    assert (built.complete, built.written) == (True, 30)
    assert (len(half), half.complete) == (30, False)
    assert ([each.amount for each in after], after.complete) == (list(range(30)), True)
    assert things.list(PART).complete


def test_an_index_is_complete_for_the_version_before_a_migration_that_was_rolled_back(world: Moving) -> None:
    class Newer(
        Entity,
        name=definition(NewPart).name,
        key=Key("{tenant}", "{id}"),
        shards=Shards(2),
        version=3,
        upgrade={1: divided, 2: lambda values: values},
        registry=Registry(),
    ):
        tenant: str
        id: str

    backfill(world, "by_amount").run()

    assert backfill(world, model=Newer).run().complete
    assert world.of(NewPart).list(PART, index="by_amount").complete


def test_an_index_build_writes_only_what_is_missing_or_wrong(world: Moving) -> None:
    things = world.of(NewPart)
    things.batch_write(put=[NewPart(**PART, id=str(n), first="a", last="b", amount=n) for n in range(6)])
    stale = next(item for item in world.raw() if item["SK"] == {"S": "3"})
    world.put({**stale, "GSI2SK": {"S": "00077"}})
    gone = next(item for item in world.raw() if item["SK"] == {"S": "4"})
    world.put({name: value for name, value in gone.items() if not name.startswith("GSI2")})

    report = backfill(world, "by_amount").run()

    assert (report.complete, report.written) == (True, 2)
    assert [each.amount for each in world.of(NewPart).list(PART, index="by_amount", order="ordered")] == list(range(6))


def test_a_build_with_other_templates_begins_anew_after_a_killed_one(world: Moving) -> None:
    class ByFirst(
        Entity,
        name=definition(NewPart).name,
        key=Key("{tenant}", "{id}"),
        shards=Shards(2),
        indexes=[Index("GSI2", "by_amount", partition="{tenant}", sort="{first}", backfill=True)],
        registry=Registry(),
    ):
        tenant: str
        id: str
        first: str

    world.of(ByFirst).batch_write(put=[ByFirst(**PART, id=f"{n:03d}", first=f"{n:03d}") for n in range(45)])
    before = [{name: value for name, value in item.items() if "GSI" not in name} for item in world.raw()]
    for item in before:
        world.put({**item, "amount": {"N": "7"}, "last": {"S": "b"}, "Ver": {"N": "2"}})

    killed = begun(world, kind="by_amount")
    for item in before:
        world.put(item)
    built = backfill(world, "by_amount", model=ByFirst).run()

    assert 0 < killed.written < 45
    assert (built.complete, built.written) == (True, 45)
    assert len(world.of(ByFirst).list(PART, index="by_amount", limit=100)) == 45


def test_a_killed_build_goes_on_after_a_resize_that_moves_nothing(world: Moving) -> None:
    class Log(
        Entity,
        name="log.v1.Log",
        key=Key("{tenant}", "{id}"),
        shards=Shards(start=2, placement="random"),
        indexes=[Index("GSI2", "by_id", partition="{tenant}", sort="{id}", backfill=True)],
        registry=Registry(),
    ):
        tenant: str
        id: str

    world.of(Log).batch_write(put=[Log(**PART, id=f"{n:03d}") for n in range(45)])
    for item in world.raw():
        world.put({name: value for name, value in item.items() if "GSI" not in name})
    killed = begun(world, kind="by_id", model=Log)
    resharder, logs = world.on(world.inner, entities=[Log]), Scope(definition(Log))
    resharder.start(logs, 4)
    world.finish(logs, resharder)

    built = backfill(world, "by_id", model=Log).run()

    assert 0 < killed.written < 45
    assert (built.complete, built.written, built.rounds) == (True, 45, 1)


def test_a_build_leaves_rows_without_a_type_to_the_entity_of_their_sort_keys(world: Moving) -> None:
    class Bill(
        Entity,
        name="shop.v1.Bill",
        key=Key("{tenant}", "bill#{id}", "shop"),
        shards=Shards(2, adopt="unsharded"),
        registry=Registry(),
    ):
        tenant: str
        id: str

    class Order(
        Entity,
        name="shop.v1.Order",
        key=Key("{tenant}", "order#{id}", "shop"),
        shards=Shards(2, adopt="unsharded"),
        indexes=[Index("GSI1", "by_id", partition="{tenant}", sort="{id}", backfill=True)],
        registry=Registry(),
    ):
        tenant: str
        id: str

    for sort in ("bill#1", "order#2"):
        world.put({"PK": {"S": f"shop:{TENANT}"}, "SK": {"S": sort}, "tenant": {"S": TENANT}, "id": {"S": sort[-1]}})

    report = backfill(world, "by_id", model=Order, beside=Bill).run()

    assert (report.written, report.unfit) == (1, ())
    assert [item["SK"]["S"] for item in world.raw() if "GSI1PK" in item] == ["order#2"]


def test_a_migration_leaves_other_entities_alone(world: Moving) -> None:
    class Other(Entity, name="other.v1.Other", key=Key("{tenant}", "{id}"), registry=Registry()):
        tenant: str
        id: str

    world.of(Other).create(Other(tenant=TENANT, id="1"))
    filled(world, 1)

    backfill(world).run()

    assert sorted(versions(world)) == ["1", "2"]


def test_deleting_meanwhile_is_not_undone(world: Moving) -> None:
    filled(world, 20)

    def delete(_: Report) -> None:
        for n in range(20):
            try:
                world.of(NewPart).delete(tenant=TENANT, id=f"{n:03d}")
            except NotFoundError:
                continue

    backfill(world, seconds=0.01, write_units=100.0).run(delete)

    assert world.raw() == []


@pytest.mark.parametrize(("kind", "complete"), [("migrate", False), ("by_last", True)])
def test_items_away_from_their_homes_are_named_and_brought_into_no_index(
    world: Moving, kind: str, *, complete: bool
) -> None:
    filled(world, 6)
    if kind == "by_last":
        backfill(world).run()
    rows = [{name: value for name, value in row.items() if not name.startswith("GSI")} for row in world.raw()]
    for row in rows:
        world.inner.call("PutItem", {"TableName": world.table, "Item": row})
    partition = rows[0]["PK"]["S"].rpartition(":")[0]
    strays = [{**rows[0], "PK": {"S": place}} for place in (partition, f"{partition}:77")]
    for stray in strays:
        world.inner.call("PutItem", {"TableName": world.table, "Item": stray})

    report = backfill(world, kind).run()

    assert (report.complete, report.written, report.left) == (complete, 6, 2)
    assert [each.problem.partition(":")[0] for each in report.unfit] == [
        "it is stored where no reader looks for it"
    ] * 2
    assert all(stray in world.raw() for stray in strays)
    assert len(world.of(NewPart).list(PART, index="by_last", limit=100).items) == 6
