"""The cost of listings: Queries, items read, read units, the size of cursors."""

from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

import pytest

from dynashard import Collection, Dynashard, Page, created_at, new_id
from dynashard.entity import Entity, Index, Key, Registry, Shards
from dynashard.reads.first_round import first_limit
from dynashard.runtime import Runtime
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import CURSOR_KEYS, NOW, Counts, Note, World, tenant
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

ITEMS, PAGE, SHARDS = 1600, 50, 16


class Event(
    Entity,
    name="listing.v1.Event",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[Index("GSI1", "by_kind", "{tenant}:{kind}", "{id}", shards=Shards(16))],
    registry=Registry(),
):
    tenant: str
    id: str = new_id()
    kind: str = "k"


@dataclass
class Measured:
    """A tenant with 1,600 items of 1 KB over 16 shards, and a collection whose transport records."""

    collection: Collection[Any]
    recording: RecordingTransport
    of: str


@pytest.fixture(scope="module")
def stored(world: World) -> str:
    # A fixed name, so that items have the same shards and figures the same digits in each run.
    of, random = "measured", Random(1)
    world.counts = Counts(SHARDS)
    notes = [Note(tenant=of, id=f"{random.random():.15f}", text="x" * 891) for _ in range(ITEMS)]
    world.collection().batch_write(put=notes)
    loads = world.collection().shards({"tenant": of})
    assert sum(load.bytes for load in loads) / ITEMS == pytest.approx(1024, abs=1)
    return of


@pytest.fixture
def measured(world: World, stored: str) -> Measured:
    world.counts = Counts(SHARDS)
    recording = RecordingTransport(world.transport)
    return Measured(world.collection(through=recording), recording, stored)


def test_a_round_robin_page_from_one_shard_is_one_query_without_surplus(measured: Measured) -> None:
    cursor: str | None = None
    for shard in range(SHARDS):
        measured.recording.clear()
        page = measured.collection.list({"tenant": measured.of}, limit=PAGE, cursor=cursor)
        cursor = page.cursor

        assert len(page.items) == PAGE
        assert len(measured.recording.requests) == 1
        assert measured.recording.scanned == PAGE
        [partition] = {r["ExpressionAttributeValues"][":partition"]["S"] for r in measured.recording.requests}
        assert partition.endswith(f":{shard}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["round_robin", "shard"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_full_listing_by_shard_reads_no_item_twice(measured: Measured, order: str, direction: str) -> None:
    asked: dict[str, Any] = {"order": order, "direction": direction, "limit": 70}

    items = [item for page in measured.collection.pages({"tenant": measured.of}, **asked) for item in page.items]

    assert len(items) == ITEMS
    assert measured.recording.scanned == ITEMS


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_an_ordered_page_takes_two_rounds_and_17_read_units(measured: Measured, direction: str) -> None:
    # From the first pages the collection estimates the size of items.
    pages = list(measured.collection.pages({"tenant": measured.of}, order="ordered", direction=direction, limit=PAGE))

    assert sum(len(page.items) for page in pages) == ITEMS
    assert max(page.rounds for page in pages) <= 2
    assert measured.recording.read_units / len(pages) <= 17


@pytest.mark.parametrize("text", [0, 400])
def test_the_second_ordered_page_fills_its_blocks_by_the_size_of_the_items_on_the_first(
    world: World, text: int
) -> None:
    world.counts, random = Counts(SHARDS), Random(2)
    of = f"sized{text}"
    notes = [Note(tenant=of, id=f"{random.random():.15f}", text="x" * text) for _ in range(ITEMS)]
    world.collection().batch_write(put=notes)
    recording = RecordingTransport(world.transport)
    collection = world.collection(through=recording)
    loads = collection.shards({"tenant": of})
    size = sum(load.bytes for load in loads) / ITEMS

    limits, cursor = [], None
    for _ in range(2):
        recording.clear()
        cursor = collection.list({"tenant": of}, order="ordered", limit=PAGE, cursor=cursor).cursor
        limits.append(recording.requests[0]["Limit"])

    assert limits == [first_limit(PAGE, SHARDS, None), first_limit(PAGE, SHARDS, size)]
    assert limits[0] != limits[1]


LARGE = 300 * 1024
"""Bytes of a large item, of which a Query returns 3."""


def test_the_first_ordered_page_of_large_items_reads_hardly_more_than_the_page_and_the_next_item_of_each_shard(
    world: World,
) -> None:
    # Round 1 uses the default budget of 1,000 units, and round 2 completes the page all the same.
    world.counts, random = Counts(SHARDS), Random(3)
    notes = [Note(tenant="large", id=f"{random.random():.15f}", text="x" * LARGE) for _ in range(96)]
    for note in notes:
        world.collection().put(note)
    recording = RecordingTransport(world.transport)

    page = world.collection(through=recording).list({"tenant": "large"}, order="ordered", limit=20)

    assert [item.id for item in page.items] == sorted(note.id for note in notes)[:20]
    assert page.rounds == 2
    # A Query reads 3 of them whatever it asks for above that, which were 48; exact order needs 35.
    assert recording.scanned <= 38


def test_fields_do_not_make_each_page_take_the_rounds_of_items_of_unknown_size(measured: Measured) -> None:
    asked: dict[str, Any] = {"order": "ordered", "limit": PAGE, "fields": ["id"]}

    measured.collection.list({"tenant": measured.of}, **asked)

    assert measured.recording.requests[0]["Limit"] == first_limit(PAGE, SHARDS, 1024)


def test_the_published_high_watermark_reads_several_times_as_much(
    measured: Measured, world: World, dynamodb: RawDynamoDB
) -> None:
    ours = list(measured.collection.pages({"tenant": measured.of}, order="ordered", limit=PAGE))
    read, units, pages, last = 0, 0.0, 0, ""

    # ConductorOne's algorithm: merge a whole page from every shard after the last key, and discard the rest.
    while True:
        found: list[str] = []
        for shard in range(SHARDS):
            answer = dynamodb.call(
                "Query",
                TableName=world.table,
                KeyConditionExpression="PK = :pk AND SK > :last",
                ExpressionAttributeValues={
                    ":pk": {"S": f"listing.v1.Note:{measured.of}:{shard}"},
                    ":last": {"S": last or "\0"},
                },
                Limit=PAGE,
                ReturnConsumedCapacity="TOTAL",
            )
            found += [item["SK"]["S"] for item in answer["Items"]]
            read += answer["Count"]
            units += answer["ConsumedCapacity"]["CapacityUnits"]
        if not found:
            break
        pages, last = pages + 1, sorted(found)[:PAGE][-1]

    assert pages == ITEMS // PAGE
    assert read / measured.recording.scanned > 4
    assert units / measured.recording.read_units > 4
    print(  # noqa: T201 - docs/listing.md quotes it
        f"\nordered page of {PAGE} over {SHARDS} shards: "
        f"{measured.recording.scanned / len(ours):.0f} items, {measured.recording.read_units / len(ours):.1f} units; "
        f"high-watermark: {read / pages:.0f} items, {units / pages:.1f} units"
    )


@pytest.mark.parametrize("count", [16, 1024])
def test_round_robin_cursors_are_short_at_any_count(world: World, count: int) -> None:
    of = tenant()
    world.counts = Counts(count)
    collection = world.collection(Event)
    events = [Event(tenant=of) for _ in range(640)]
    collection.batch_write(put=events)

    # Three items a page leave as many shards as take turns with a position of its own.
    pages = list(collection.pages({"tenant": of}, limit=3))

    assert sorted(item.id for page in pages for item in page.items) == sorted(event.id for event in events)
    longest = max(len(page.cursor) for page in pages if page.cursor)
    assert longest <= 1024
    print(f"\nround-robin cursor over {count} shards: at most {longest} bytes")  # noqa: T201 - as above


@pytest.mark.parametrize("index", [None, "by_kind"])
def test_ordered_cursors_are_short(world: World, index: str | None) -> None:
    of = tenant()[:8]
    world.counts = Counts(16, 16)
    collection = world.collection(Event)
    collection.batch_write(put=[Event(tenant=of) for _ in range(100)])
    partition = {"tenant": of} if index is None else {"tenant": of, "kind": "k"}

    sizes = [len(p.cursor) for p in collection.pages(partition, index=index, order="ordered", limit=10) if p.cursor]

    # 16 fences and a signature: mostly 270 to 285 in the index, and 215 in the table.
    assert max(sizes) <= 300
    print(f"\nordered cursor, {index or 'table'}: at most {max(sizes)} bytes")  # noqa: T201 - as above


class Task(
    Entity,
    name="listing.v1.Task",
    key=Key("{tenant}", "{id}"),
    shards=Shards(64),
    indexes=[
        Index("GSI1", "by_date", "{tenant}", "{created_at}#{id}", shards=Shards(64)),
        Index("GSI2", "by_rank", "{tenant}", "{rank:04d}#{id}", shards=Shards(64)),
    ],
    registry=Registry(),
):
    tenant: str
    id: str = new_id()
    rank: int = 0
    created_at: datetime = created_at()


@pytest.mark.parametrize(("index", "keeps"), [(None, True), ("by_date", True), ("by_rank", False)])
def test_a_page_20_seconds_later_skips_shards_unless_an_update_can_move_items(
    world: World, index: str | None, *, keeps: bool
) -> None:
    of, now = tenant(), [NOW.timestamp()]
    world.counts = Counts(64, 64)
    db = Dynashard(
        world.transport,
        table=world.table,
        cursor_keys=CURSOR_KEYS,
        topology=world.counts,
        runtime=Runtime(lambda: now[0]),
    )
    tasks = db.collection(Task)
    tasks.batch_write(put=[Task(tenant=of) for _ in range(300)], whole=True)
    asked: dict[str, Any] = {"index": index, "order": "ordered", "limit": 10}
    first = tasks.list({"tenant": of}, **asked)

    now[0] += 20
    second = tasks.list({"tenant": of}, **asked, cursor=first.cursor)

    assert (len(first), len(second)) == (10, 10)
    assert (second.consumed.requests < 64) is keeps


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_page_of_somebody_who_reads_slowly_takes_at_most_40_units_at_256_shards(world: World, seed: int) -> None:
    # The first page queries all shards, and most fences of the next ones are from it: 51 and 73 units for the fifth
    # page when all of these stood at one key.
    of, random, now = f"slow{seed}", Random(seed), [NOW.timestamp()]
    world.counts = Counts(256)
    db = Dynashard(
        world.transport,
        table=world.table,
        cursor_keys=CURSOR_KEYS,
        topology=world.counts,
        runtime=Runtime(lambda: now[0]),
    )
    notes = db.collection(Note)
    stored = [Note(tenant=of, id=f"{random.random():.15f}", text="x" * 891) for _ in range(1_000)]
    notes.batch_write(put=stored)
    pages, cursor = list[Page[Note]](), None
    for _ in range(9):
        pages.append(notes.list({"tenant": of}, order="ordered", limit=PAGE, cursor=cursor))
        cursor = pages[-1].cursor
        now[0] += 20

    assert [item.id for page in pages for item in page] == sorted(note.id for note in stored)[: 9 * PAGE]
    assert pages[0].consumed.read_units <= 160
    assert max(page.consumed.read_units for page in pages[1:]) <= 40


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [20, 50])
def test_ordered_pages_of_large_items_read_less_than_twice_what_they_return(world: World, limit: int) -> None:
    world.counts = Counts(SHARDS)
    # A fixed name, because the figures depend on how the items spread over the shards.
    of, random = f"large{limit}", Random(2)
    world.collection().batch_write(
        put=[Note(tenant=of, id=f"{random.random():.15f}", text="x" * 300_000) for _ in range(80)], whole=True
    )
    collection = world.collection()
    # The first page learns how large items are.
    page = collection.list({"tenant": of}, order="ordered", limit=limit)
    read = returned = 0.0
    while page.cursor is not None:
        page = collection.list({"tenant": of}, order="ordered", limit=limit, cursor=page.cursor)
        read, returned = read + page.consumed.read_units, returned + len(page.items) * 300_000 / 8192

    assert read < 1.8 * returned
