"""Topology records: their content, their resizes, and their stored form."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.errors import UndecodableItemError
from dynashard.placement import UNSHARDED
from dynashard.schema import MAX_SHARDS, TOPOLOGY_HISTORY_LENGTH
from dynashard.topology import DEFAULT_LEASE, Phase, Record, View, family_of, index_key, partition_key
from dynashard.topology.records import decode, encode, first_record

pytestmark = pytest.mark.unit

EPOCH = 1_780_000_000.0
counts = st.sampled_from([1, 2, 4, 8, 16, 1024])
clocks = st.floats(0, 4e9, allow_nan=False)
records = st.builds(
    Record,
    key=st.text(min_size=1, max_size=20),
    count=counts | st.just(0),
    updated=st.decimals(0, 4_000_000_000, places=6),
    lease=st.floats(0.1, 900),
    history=st.frozensets(st.builds("{}:{}".format, st.integers(0, 2**32), counts), max_size=20),
    phase=st.just(Phase.STABLE),
    since=clocks,
    target=st.none() | counts,
    swept=st.booleans(),
    resize=st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.none() | st.booleans(), max_size=3),
    differ_since=st.none() | clocks,
    active=st.frozensets(st.text(min_size=1), max_size=3),
    former_lease=st.just(0.0) | st.floats(0.1, 900),
    lowered_at=st.none() | clocks,
    former=st.frozensets(counts, max_size=3),
    backfilled=st.dictionaries(st.text(min_size=1), st.text(), max_size=3),
)


@given(records, st.sampled_from(Phase), counts)
def test_a_stored_record_is_read_back_unchanged(record: Record, phase: Phase, target: int) -> None:
    changing = replace(record, phase=phase, target=target)

    assert decode(encode(record)) == record
    assert decode(encode(changing)) == changing


@pytest.mark.parametrize("count", [UNSHARDED, MAX_SHARDS])
def test_the_smallest_and_the_largest_count_are_read(count: int) -> None:
    assert decode(encode(first_record("thing:abc", count, now=EPOCH, lease=30))).count == count


def test_a_record_with_only_key_and_count_is_complete() -> None:
    record = decode({"partition": {"S": "a"}, "number_of_shards": {"N": "8"}})

    assert record == Record("a", 8, Decimal(0), 0.0)
    assert record.view(7.0, markers=False) == View(8, Phase.STABLE, None, 7.0)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("number_of_shards", None),
        ("number_of_shards", {"S": "8"}),
        ("number_of_shards", {"N": "1.5"}),
        ("number_of_shards", {"N": "-1"}),
        ("number_of_shards", {"N": "2048"}),
        ("phase", {"S": "resting"}),
        ("phase", {"S": "move"}),
        ("phase", {"S": "epochs"}),
        ("last_updated", {"S": "yesterday"}),
        ("swept", {"N": "1"}),
        ("shard_history", {"N": "1"}),
    ],
)
def test_an_invalid_record_is_refused_with_its_key(attribute: str, value: Any) -> None:
    wire = encode(first_record("thing:abc", 8, now=EPOCH, lease=30))
    wire.pop(attribute, None)
    if value is not None:
        wire[attribute] = value

    with pytest.raises(UndecodableItemError, match="the topology record thing:abc cannot be used"):
        decode(wire)


def test_a_record_with_epochs_has_a_phase_of_its_own_or_none() -> None:
    record = first_record("a", 1, now=EPOCH, lease=30).publishing(EPOCH, "k", 4)
    wire = encode(record)

    assert decode(wire) == record
    assert decode({**wire, "phase": {"S": "stable"}}) == record
    with pytest.raises(UndecodableItemError, match="'resting' is not a valid Phase"):
        decode({**wire, "phase": {"S": "resting"}})


@pytest.mark.parametrize("phase", Phase)
def test_only_a_published_change_has_a_target_for_routing(phase: Phase) -> None:
    record = replace(first_record("a", 8, now=EPOCH, lease=30), phase=phase, target=16)

    assert record.view(9.0, markers=True) == View(8, phase, None if phase is Phase.STABLE else 16, 9.0, markers=True)
    assert record.busy


@pytest.mark.parametrize(("lease", "granted"), [(0.5, 0.5), (1.0, 1.0), (0.0, DEFAULT_LEASE)])
def test_a_record_grants_the_lease_that_it_has(lease: float, granted: float) -> None:
    assert first_record("thing:abc", 1, now=EPOCH, lease=lease).granted == granted


def test_a_record_is_busy_until_its_markers_are_swept() -> None:
    quiet = first_record("a", 8, now=EPOCH, lease=30)

    assert [quiet.busy, replace(quiet, swept=False).busy, replace(quiet, target=16).busy] == [False, True, True]


@given(st.lists(st.tuples(clocks, counts), max_size=40))
def test_updates_rise_and_the_history_keeps_the_newest_counts_with_any_clocks(
    resizes: list[tuple[float, int]],
) -> None:
    record = first_record("a", 8, now=EPOCH, lease=30)
    expected = [8]
    for now, count in resizes:
        changed = record.revised(now, count=count)
        if count != record.count:
            expected.append(count)
        assert changed.updated > record.updated
        record = changed

    dated = sorted((int(epoch), int(count)) for epoch, count in (entry.split(":") for entry in record.history))
    assert [count for _, count in dated] == expected[-TOPOLOGY_HISTORY_LENGTH:]
    assert len({epoch for epoch, _ in dated}) == len(dated)


def test_the_history_is_bounded() -> None:
    record = first_record("a", 1, now=EPOCH, lease=30)

    for number in range(100):
        record = record.revised(EPOCH + 60 * number, count=2 + number % 2)

    assert len(record.history) == TOPOLOGY_HISTORY_LENGTH
    assert min(record.history) == f"{EPOCH + 60 * 80:.0f}:2"


def test_the_history_has_the_time_of_each_count() -> None:
    record = first_record("a", 8, now=EPOCH, lease=30)

    record = record.revised(EPOCH + 60.9, count=16).revised(EPOCH + 70, phase=Phase.STABLE, count=16)

    assert record.history == {"1780000000:8", "1780000060:16"}


def test_keys_of_families_partitions_and_indexes_differ() -> None:
    class Published(
        Entity, name="thing", key=Key("{path}", "{id}", prefix="", separator="_"), shards=Shards(4), registry=Registry()
    ):
        path: str
        id: str

    class Shared(
        Entity,
        name="s",
        key=Key("{path}", "{id}", prefix="thing"),
        shards=Shards(4),
        indexes=[Index("GSI1", "by_path", "{path}", "{id}", shards=Shards(4))],
        registry=Registry(),
    ):
        path: str
        id: str

    bare, shared = definition(Published), definition(Shared)
    keys = [
        family_of(bare),
        family_of(shared),
        partition_key(bare, "a"),
        partition_key(shared, "thing:a"),
        partition_key(shared, "thing:a|GSI1"),
        index_key(shared, shared.indexes["by_path"]),
    ]

    assert partition_key(shared, "thing:a") == "thing:a"
    assert len(set(keys)) == len(keys)
