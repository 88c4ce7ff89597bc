"""Counts equal the number of listed items."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Filter
from dynashard.placement import CALCULATED
from tests.depth import examples
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import (
    INDEXES,
    BareNote,
    Counts,
    Note,
    World,
    alive,
    listed,
    some_notes,
    tenant,
)
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

SPANS: list[dict[str, str]] = [
    {},
    {"prefix": "a"},
    {"prefix": "\U0010ffff"},
    {"start": "a"},
    {"end": "b"},
    {"start": "a", "end": "b"},
    {"start": "b", "end": "b"},
]


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from([1, 4, 16]),
    span=st.sampled_from(SPANS),
    index=st.sampled_from([None, *INDEXES]),
    direction=st.sampled_from(["asc", "desc"]),
    filters=st.sampled_from([[], [Filter("kept", "=", value=True)], [Filter("size", ">", 0)]]),
)
def test_a_count_is_the_number_of_listed_items(
    world: World,
    *,
    seed: int,
    count: int,
    span: dict[str, str],
    index: str | None,
    direction: str,
    filters: list[Filter],
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(count, count)
    collection = world.collection()
    notes = [*some_notes(random, random.randrange(60), of=of, ranks=2), Note(tenant=of, id="b", group="g", rank="b")]
    collection.batch_write(put=notes)
    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}
    asked: dict[str, Any] = {**span, "index": index, "filters": filters, "direction": direction}

    counted = collection.count(partition, **asked)

    assert counted == len(listed(collection, partition, lambda: 50, **asked))


def test_markers_and_items_of_other_types_are_not_counted(world: World, dynamodb: RawDynamoDB) -> None:
    of = tenant()
    collection = world.collection(BareNote)
    collection.batch_write(put=[BareNote(tenant=of, id=f"{n}") for n in range(5)])
    partition = {"PK": {"S": f"listing.v1.BareNote:{of}"}}
    for sort, more in {
        "marked": {"Type": {"S": "listing.v1.BareNote"}, "MovedTo": {"N": "2"}},
        "bare mark": {"MovedTo": {"N": "2"}},
        "foreign": {"Type": {"S": "listing.v1.Other"}},
        "adopted": {"tenant": {"S": of}, "id": {"S": "adopted"}},
    }.items():
        dynamodb.call("PutItem", TableName=world.table, Item={**partition, "SK": {"S": sort}, **more})

    items = listed(collection, {"tenant": of}, lambda: 3)

    assert collection.count({"tenant": of}) == len(items) == 6


def test_an_empty_range_is_counted_without_a_request(world: World) -> None:
    recording = RecordingTransport(world.transport)

    assert world.collection(through=recording).count({"tenant": "t"}, start="b", end="b") == 0
    assert recording.requests == []


def test_a_count_continues_beyond_a_megabyte_a_shard(world: World) -> None:
    of, world.counts = tenant(), Counts(2)
    recording = RecordingTransport(world.transport)
    collection = world.collection(through=recording)
    for n in range(12):
        collection.create(Note(tenant=of, id=f"{n:02d}", text="x" * 350_000))
    recording.clear()

    counted = collection.count({"tenant": of})

    assert counted == 12
    assert len(recording.answers) > 2


def test_the_loads_of_shards_show_where_the_live_items_are(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    notes = some_notes(Random(3), 80, of=of)
    collection.batch_write(put=notes)

    loads = collection.shards({"tenant": of}, workers=3)

    assert [load.partition_key for load in loads] == [f"listing.v1.Note:{of}:{n}" for n in range(4)]
    assert sum(load.items for load in loads) == collection.count({"tenant": of})
    for load in loads:
        shard = int(load.partition_key.rpartition(":")[2])
        assert load.items == sum(
            alive(note) and CALCULATED.shard(CALCULATED.hash(f"listing.v1.Note:{of}:{note.id}"), 4) == shard
            for note in notes
        )
        assert load.bytes > load.items * 100
