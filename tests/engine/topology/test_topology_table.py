"""The topology table: only a writer that has seen the latest record updates it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from dynashard.errors import (
    OutcomeUnknownError,
    TopologyChangedError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.testing.faults import (
    Fault,
    FaultyTransport,
    Send,
    conflict,
    meanwhile,
    meanwhile_repeated,
    repeated,
    unprocessed,
)
from dynashard.topology import EpochState, Phase, Record, TopologyTable
from dynashard.topology.records import first_record
from dynashard.transport import Transport, Wire
from dynashard.transport.classification import Refusal, classify
from tests.engine.topology.topology_world import put_by_hand, topology_table_on

pytestmark = pytest.mark.engine

NOW = 1_780_000_000.0


@pytest.fixture(scope="module")
def name(wire: Transport) -> Iterator[str]:
    with topology_table_on(wire) as created:
        yield created


@pytest.fixture
def own_name(wire: Transport) -> Iterator[str]:
    with topology_table_on(wire) as created:
        yield created


def first(key: str, count: int = 8, **fields: Any) -> Record:
    return replace(first_record(key, count, now=NOW, lease=30.0), **fields)


def cancelled(*codes: str) -> Fault:
    """Cancel a transaction for these reasons, one for each action."""
    body = {"CancellationReasons": [{"Code": code} for code in codes]}
    operation = "TransactWriteItems"

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise classify(Refusal(operation, 400, "TransactionCanceledException", "", body))

    return Fault(operation, strike)


def stored(table: TopologyTable, key: str) -> Record:
    record = table.find(key)
    assert record is not None
    return record


def test_a_record_is_read_as_it_was_stored(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    resize = {"id": "x", "back_to": None, "budget": 12, "tasks": ["a", "b"], "paused": False}
    record = first("put", phase=Phase.MOVE, target=16, swept=False, resize=resize, differ_since=NOW, active={"put"})

    assert table.create(record) == record
    assert table.find("put") == record
    assert table.find("none") is None


def test_many_records_are_read_at_once_without_missing_ones(wire: Transport, name: str) -> None:
    counting = FaultyTransport(wire)
    table = TopologyTable(counting, name)
    keys = [f"many-{number}" for number in range(200)]
    for key in keys[::2]:
        put_by_hand(wire, name, first(key))

    found = table.read([*keys, *keys])

    assert found == {key: first(key) for key in keys[::2]}
    assert len(counting.calls) == 2


def test_records_that_a_batch_leaves_out_are_read_one_by_one(wire: Transport, name: str) -> None:
    table = TopologyTable(FaultyTransport(wire, [unprocessed("BatchGetItem", keep=2)]), name)
    for key in ("left-1", "left-2"):
        put_by_hand(wire, name, first(key))

    assert table.read(["left-1", "left-2", "left-3"]).keys() == {"left-1", "left-2"}


def test_everything_is_read_consistently(wire: Transport, name: str) -> None:
    faulty = FaultyTransport(wire, [unprocessed("BatchGetItem", keep=1)])
    table = TopologyTable(faulty, name)

    table.read(["a", "b"])
    list(table.own("a"))

    [batch, single, scan] = [call.request for call in faulty.calls]
    assert batch["RequestItems"][name]["ConsistentRead"]
    assert single["ConsistentRead"]
    assert scan["ConsistentRead"]


def test_the_first_write_of_a_record_decides(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)

    assert table.create(first("first", 8)).count == 8
    assert table.create(first("first", 16)) == first("first", 8)


@pytest.mark.parametrize("fault", [repeated("PutItem"), conflict("PutItem")])
def test_the_first_write_outlasts_a_lost_answer_and_a_conflict(wire: Transport, name: str, fault: Fault) -> None:
    faulty = FaultyTransport(wire, [fault])
    record = first(f"founded-{fault.strike.__qualname__}")

    assert TopologyTable(faulty, name).create(record) == record
    assert TopologyTable(wire, name).find(record.key) == record
    assert not faulty.waiting


def test_a_first_write_that_always_conflicts_is_reported(wire: Transport, name: str) -> None:
    table = TopologyTable(FaultyTransport(wire, [conflict("PutItem", nth=None)]), name)

    with pytest.raises(TransactionConflictError):
        table.create(first("conflict"))


def test_a_change_of_the_latest_record_is_saved(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    was = table.create(first("saved"))

    table.save((was, new := was.revised(NOW, phase=Phase.PREPARE, target=16)))

    assert table.find("saved") == new


@pytest.mark.parametrize("now", [NOW - 1000, NOW, NOW + 1000])
def test_a_change_of_an_outdated_record_is_refused(wire: Transport, name: str, now: float) -> None:
    table = TopologyTable(wire, name)
    key = f"latest-{now}"
    was = table.create(first(key))
    table.save((was, latest := was.revised(now, target=16)))

    with pytest.raises(TopologyChangedError, match=f"{key} was changed meanwhile; read it again"):
        table.save((was, was.revised(NOW + 5, target=4)))
    assert table.find(key) == latest


def test_creating_a_record_does_not_replace_one(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    table.save((None, first("new")))

    with pytest.raises(TopologyChangedError):
        table.save((None, first("new", 16)))
    assert stored(table, "new").count == 8


def test_saving_does_not_restore_a_deleted_record(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    gone = first("gone")

    for was in (gone, replace(gone, updated=gone.updated * 0)):
        with pytest.raises(TopologyChangedError):
            table.save((was, was.revised(NOW, target=16)))
    assert table.find("gone") is None


def test_a_record_put_by_hand_without_a_time_can_be_changed_once(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    wire.call("PutItem", {"TableName": name, "Item": {"partition": {"S": "hand"}, "number_of_shards": {"N": "8"}}})
    put_by_hand(wire, name, was_zero := first("zero", updated=stored(table, "hand").updated))

    for was in (stored(table, "hand"), was_zero):
        table.save((was, new := was.revised(NOW, count=16)))
        with pytest.raises(TopologyChangedError):
            table.save((was, was.revised(NOW, count=4)))
        assert table.find(was.key) == new


def two(name: str) -> tuple[Record, Record]:
    return first(f"{name}-family"), first(f"{name}-partition")


def test_several_records_are_changed_together(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    family, partition = two("together")
    table.create(family)

    table.save((family, changed := family.revised(NOW, active=frozenset({partition.key}))), (None, partition))

    assert table.read([family.key, partition.key]) == {family.key: changed, partition.key: partition}


def test_of_several_records_none_is_changed_if_one_was_meanwhile(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    family, partition = two("none")
    table.create(family)
    table.save((family, latest := family.revised(NOW, target=16)))

    with pytest.raises(TopologyChangedError, match=f"{family.key}, {partition.key} was changed"):
        table.save((family, family.revised(NOW, swept=False)), (None, partition))
    assert table.read([family.key, partition.key]) == {family.key: latest}


def updates_of(name: str, several: bool) -> tuple[list[tuple[Record | None, Record]], Record]:  # noqa: FBT001
    family, partition = two(name)
    new = family.revised(NOW, resize={"units": 0.1, "pair": (1, 2)})
    return [(family, new), (None, partition)][: 1 + several], family


@pytest.mark.parametrize("several", [False, True])
def test_a_change_whose_answer_was_lost_recognises_itself(wire: Transport, name: str, several: bool) -> None:  # noqa: FBT001
    operation = "TransactWriteItems" if several else "PutItem"
    updates, family = updates_of(f"lost-{several}", several)
    put_by_hand(wire, name, family)
    faulty = FaultyTransport(wire, [repeated(operation)])

    TopologyTable(faulty, name).save(*updates)

    assert not faulty.waiting
    assert stored(TopologyTable(wire, name), family.key).updated == updates[0][1].updated


@pytest.mark.parametrize("several", [False, True])
def test_a_change_that_another_continued_has_an_unknown_outcome(wire: Transport, name: str, several: bool) -> None:  # noqa: FBT001
    operation = "TransactWriteItems" if several else "PutItem"
    updates, family = updates_of(f"overtaken-{several}", several)
    put_by_hand(wire, name, family)
    later = updates[0][1].revised(NOW, target=32)
    faulty = FaultyTransport(wire, [meanwhile_repeated(operation, lambda: put_by_hand(wire, name, later))])

    with pytest.raises(OutcomeUnknownError, match="read it again"):
        TopologyTable(faulty, name).save(*updates)
    assert stored(TopologyTable(wire, name), family.key).target == 32


@pytest.mark.parametrize("several", [False, True])
def test_a_change_that_lost_a_race_is_refused(wire: Transport, name: str, several: bool) -> None:  # noqa: FBT001
    operation = "TransactWriteItems" if several else "PutItem"
    updates, family = updates_of(f"race-{several}", several)
    put_by_hand(wire, name, family)
    theirs = family.revised(NOW, target=32)
    faulty = FaultyTransport(wire, [meanwhile(operation, lambda: TopologyTable(wire, name).save((family, theirs)))])

    with pytest.raises(TopologyChangedError, match="read it again"):
        TopologyTable(faulty, name).save(*updates)
    assert stored(TopologyTable(wire, name), family.key) == theirs


def pending(table: TopologyTable, key: str) -> Record:
    """Store a record with an epoch that is not settled."""
    was = table.create(first(key))
    table.save((was, new := was.publishing(NOW, "k", 16)))
    return new


def change(table: TopologyTable, key: str) -> None:
    """Change a record as somebody does who settles nothing."""
    was = stored(table, key)
    table.save((was, was.revised(NOW, swept=not was.swept)))


@pytest.mark.parametrize("changes", [1, 2])
def test_an_epoch_is_settled_although_others_change_its_record(wire: Transport, name: str, changes: int) -> None:
    table, key = TopologyTable(wire, name), f"settled-{changes}"
    pending(table, key)
    faults = [meanwhile("PutItem", lambda: change(table, key), nth=nth + 1) for nth in range(changes)]

    settled = TopologyTable(FaultyTransport(wire, faults), name).settle(key, "k", EpochState.CONFIRMED, now=NOW)

    assert settled == stored(table, key)
    assert settled is not None
    assert (settled.count, settled.epochs[-1].state) == (16, EpochState.CONFIRMED)


def test_an_epoch_of_a_record_that_always_changes_is_not_settled(wire: Transport, name: str) -> None:
    table = TopologyTable(wire, name)
    pending(table, "busy")
    faulty = FaultyTransport(wire, [meanwhile("PutItem", lambda: change(table, "busy"), nth=None)])

    with pytest.raises(TopologyChangedError, match="read it again"):
        TopologyTable(faulty, name).settle("busy", "k", EpochState.VOID, now=NOW)
    assert stored(table, "busy").epochs[-1].state is EpochState.PENDING


def test_nothing_is_settled_in_a_record_that_does_not_exist(wire: Transport, name: str) -> None:
    assert TopologyTable(wire, name).settle("nobody", "k", EpochState.VOID, now=NOW) is None


def test_a_conflict_is_raised_as_a_changed_topology(wire: Transport, name: str) -> None:
    table = TopologyTable(FaultyTransport(wire, [conflict("PutItem")]), name)

    with pytest.raises(TopologyChangedError, match="changing the topology now"):
        table.save((None, first("busy")))


def test_an_impossible_change_is_not_taken_for_a_race(wire: Transport, name: str) -> None:
    table = TopologyTable(FaultyTransport(wire, [cancelled("ValidationError", "None")]), name)

    with pytest.raises(TransactionCanceledError):
        table.save((None, first("wrong")), (None, first("right")))
    assert table.read(["wrong", "right"]) == {}


def test_the_own_records_of_a_family_are_its_partitions_and_indexes(wire: Transport, own_name: str) -> None:
    keys = ["a", "a:1", "a:2", "a|GSI1", "A:1", "ab:1", "b:1", "=a:1", "@a:1"]
    for key in keys:
        put_by_hand(wire, own_name, first(key))
    progress: Mapping[str, Any] = {"partition": {"S": "a:progress"}, "moved": {"N": "1"}}
    wire.call("PutItem", {"TableName": own_name, "Item": progress})

    assert {record.key for record in TopologyTable(wire, own_name).own("a")} == {"a:1", "a:2", "a|GSI1"}


def test_the_own_records_are_read_page_by_page(wire: Transport, own_name: str) -> None:
    keys = {f"a:{number}" for number in range(8)}
    for key in keys:
        put_by_hand(wire, own_name, first(key, resize={"text": "x" * 300_000}))
    counting = FaultyTransport(wire)

    assert {record.key for record in TopologyTable(counting, own_name).own("a")} == keys
    assert counting.sent("Scan") > 1
