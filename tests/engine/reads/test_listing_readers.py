"""Listings whose answers become entities as they arrive are those of stored items that are decoded later."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Entity, Filter, definition
from dynashard.reads import Page, Query
from dynashard.routing import home
from dynashard.topology import Phase
from dynashard.transport.interface import Call, Wire
from dynashard_serving.documents import REVISION, item_texts, list_text
from dynashard_serving.operations.pages import stored_text
from tests.depth import examples
from tests.engine.reads.listing_world import (
    INDEXES,
    NOW,
    BareNote,
    Counts,
    ModuloNote,
    Note,
    World,
    some_notes,
    tenant,
)
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

MODELS: list[type[Entity]] = [Note, BareNote, ModuloNote]
KEPT = [Filter("kept", "=", value=True)]


class WithoutReaders(RecordingTransport):
    """Answers stored items."""

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        return super().call_all([call._replace(reader=None) for call in calls], concurrency=concurrency)


def items_of(random: Random, model: type[Entity], size: int, of: str) -> list[Any]:
    """Return items with ids of various lengths; some notes have expired, and some have values of other types."""
    made = []
    for number in range(size):
        name = random.choice(["a", "b", "ü"]) + f"{number:04d}" + "x" * random.choice([0, 0, 5, 700])
        more: dict[str, Any] = {"kept": random.random() < 0.7}
        if model is Note:
            more |= {"tags": random.choice([None, {"t"}]), "expires_at": random.choice([None, NOW.replace(year=2029)])}
        made.append(model(tenant=of, id=name, **more))  # type: ignore[call-arg]
    return made


def seen(item: Any) -> Any:
    """All that a caller sees of an item, or of its fields."""
    if isinstance(item, dict):
        return repr(item)
    return type(item), repr(item), item.model_fields_set, item.revision, type(item.revision)


def whole(page: Page[Any]) -> Any:
    """All that a caller sees of a page."""
    items = [seen(item) for item in page.items]
    return items, page.cursor, page.consumed, page.rounds


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from(MODELS),
    asked=st.fixed_dictionaries(
        {"order": st.sampled_from(["round_robin", "shard"]), "direction": st.sampled_from(["asc", "desc"])},
        optional={
            "filters": st.just(KEPT),
            "fields": st.sampled_from([["id"], ["kept", "tenant"], []]),
            "prefix": st.just("b"),
            "start": st.just("a0003"),
            "end": st.just("b0009"),
        },
    ),
)
def test_pages_and_cursors_are_those_of_stored_items(
    world: World, seed: int, model: type[Entity], asked: dict[str, Any]
) -> None:
    if "prefix" in asked:
        asked = {name: value for name, value in asked.items() if name not in ("start", "end")}
    random, of = Random(seed), tenant()
    world.counts = Counts(random.choice([1, 4, 16]))
    world.collection(model).batch_write(put=items_of(random, model, random.choice([0, 5, 60]), of))
    stored = WithoutReaders(world.transport)
    cursor: str | None = None

    while True:
        more = {"limit": random.choice([1, 3, 20, 100]), "cursor": cursor, **asked}
        page = world.collection(model).list({"tenant": of}, **more)
        assert whole(page) == whole(world.collection(model, through=stored).list({"tenant": of}, **more))
        cursor = page.cursor
        if cursor is None:
            break
        if model is Note and random.random() < 0.2:
            # Nothing is moved: what a listing returns then is compared elsewhere.
            world.counts.count = random.choice([1, 2, 4, 8, 16, 32])


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from([BareNote, ModuloNote]),
    asked=st.fixed_dictionaries(
        {"order": st.sampled_from(["round_robin", "round_robin", "shard", "ordered"])},
        optional={"direction": st.just("desc"), "filters": st.just(KEPT)},
    ),
)
def test_pages_of_documents_are_those_of_entities(
    world: World, seed: int, model: type[Entity], asked: dict[str, Any]
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(random.choice([1, 4, 16]))
    # Two collections, because ordered pages depend on the sizes of items that a collection has read before.
    notes, others = world.collection(model), world.collection(model)
    notes.batch_write(put=items_of(random, model, random.choice([0, 5, 60]), of))
    cursor = None

    while True:
        more = {"limit": random.choice([1, 3, 20, 100]), **asked}
        page = notes.list({"tenant": of}, cursor=cursor, **more)
        documents = others.listing.page(Query(notes.entity, {"tenant": of}, **more), cursor, revision_as=REVISION)
        assert stored_text(documents.items) == list_text(item_texts(page.items))
        assert whole(replace(documents, items=[])) == whole(replace(page, items=[]))
        cursor = page.cursor
        if cursor is None:
            break


def test_documents_are_made_without_stored_items(world: World) -> None:
    world.counts, of = Counts(4), tenant()
    notes = world.collection(BareNote)
    notes.batch_write(put=[BareNote(tenant=of, id=f"{n}") for n in range(9)])

    page = notes.listing.page(Query(notes.entity, {"tenant": of}, limit=9), revision_as=REVISION)

    assert len(page.items) == 9
    assert {type(item) for item in page.items} == {tuple}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fields", [None, ["id"], []])
@pytest.mark.parametrize("model", MODELS)
def test_a_scan_returns_what_decoding_stored_items_returns(
    world: World, model: type[Entity], fields: list[str] | None
) -> None:
    world.counts, of = Counts(4), tenant()
    world.collection(model).batch_write(put=items_of(Random(3), model, 60, of))

    made = list(world.collection(model).scan({"tenant": of}, fields=fields))

    stored = world.collection(model, through=WithoutReaders(world.transport)).scan({"tenant": of}, fields=fields)
    assert made
    assert list(map(seen, made)) == list(map(seen, stored))


def test_a_page_is_made_without_stored_items(world: World) -> None:
    world.counts, of = Counts(4), tenant()
    recording = RecordingTransport(world.transport)
    world.collection(BareNote).batch_write(put=[BareNote(tenant=of, id=f"{n}") for n in range(9)])

    page = world.collection(BareNote, through=recording).list({"tenant": of}, limit=9)

    rows = [row for answer in recording.answers for row in answer["Items"].rows]
    assert rows == page.items
    assert {type(row) for row in rows} == {BareNote}


def test_fields_are_selected_without_stored_items(world: World) -> None:
    world.counts, of = Counts(4), tenant()
    recording = RecordingTransport(world.transport)
    notes = world.collection(BareNote, through=recording)
    notes.batch_write(put=[BareNote(tenant=of, id=f"{n}", kept=n > 3) for n in range(9)])

    page = notes.list({"tenant": of}, limit=9, fields=["kept", "id"])
    scanned = list(notes.scan({"tenant": of}, fields=["kept", "id"]))

    rows = [row for answer in recording.answers if "Items" in answer for row in answer["Items"].rows]
    assert len(rows) == 18
    assert {type(row) for row in rows} == {tuple}
    assert sorted(page.items, key=repr) == sorted(scanned, key=repr)
    assert sorted(page.items, key=repr) == [{"kept": n > 3, "id": f"{n}"} for n in (0, 1, 2, 3, 4, 5, 6, 7, 8)]


@pytest.mark.parametrize(
    ("asked", "resize"),
    [
        ({"filters": KEPT}, {}),
        ({"order": "ordered"}, {}),
        ({}, {"resize": (Phase.MOVE, 32)}),
        ({}, {"resize": (Phase.SETTLE, 32)}),
        ({"index": "by_rank"}, {"index_resize": (Phase.MOVE, 8)}),
        ({"index": "by_rank"}, {"marks": True}),
    ],
    ids=str,
)
def test_a_listing_that_needs_stored_items_reads_them(
    world: World, asked: dict[str, Any], resize: dict[str, Any]
) -> None:
    world.counts, of = Counts(16), tenant()
    world.collection().batch_write(put=[Note(tenant=of, id=f"{n}", group="g", rank="r") for n in range(9)])
    world.counts = Counts(16, **resize)
    recording = RecordingTransport(world.transport)

    world.collection(through=recording).list({"tenant": of, **({"group": "g"} if "index" in asked else {})}, **asked)

    answers = [answer for answer in recording.answers if "Items" in answer]
    assert answers
    assert all(isinstance(answer["Items"], list) for answer in answers)


def make_stale(world: World, note: Note) -> None:
    """Change a field in the keys of indexes as a version does that does not declare them."""
    entity = definition(Note)
    key = {"PK": {"S": home(entity, entity.key_of(note), world.counts.count)}, "SK": {"S": note.id}}
    update = {"ExpressionAttributeNames": {"#rank": "rank"}, "ExpressionAttributeValues": {":rank": {"S": "r9"}}}
    request = {"TableName": world.table, "Key": key, "UpdateExpression": "SET #rank = :rank", **update}
    world.transport.call("UpdateItem", request)


@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 2**32),
    asked=st.fixed_dictionaries(
        {
            "index": st.sampled_from(INDEXES),
            "order": st.sampled_from(["round_robin", "shard"]),
            "direction": st.sampled_from(["asc", "desc"]),
        },
        optional={"fields": st.sampled_from([["id"], ["kept", "group"]]), "start": st.just("r1")},
    ),
    ranks=st.sampled_from([1, 3, 1000]),
)
def test_pages_of_an_index_are_those_of_stored_items(
    world: World, seed: int, asked: dict[str, Any], ranks: int
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(16, random.choice([1, 4]))
    notes = some_notes(random, random.choice([5, 60]), of=of, ranks=ranks)
    world.collection().batch_write(put=notes)
    for note in random.sample(notes, 2):
        make_stale(world, note)
    stored = WithoutReaders(world.transport)
    cursor: str | None = None

    while True:
        more = {"limit": random.choice([1, 3, 20, 100]), "cursor": cursor, **asked}
        page = world.collection().list({"tenant": of, "group": "g"}, **more)
        others = world.collection(through=stored).list({"tenant": of, "group": "g"}, **more)
        assert whole(page) == whole(others)
        cursor = page.cursor
        if cursor is None:
            break


def test_a_page_of_an_index_is_made_without_stored_items(world: World) -> None:
    world.counts, of = Counts(4), tenant()
    recording = RecordingTransport(world.transport)
    world.collection().batch_write(put=[Note(tenant=of, id=f"{n}", group="g", rank=f"r{n % 2}") for n in range(9)])

    page = world.collection(through=recording).list({"tenant": of, "group": "g"}, index="by_rank_bare", limit=9)

    rows = [row for answer in recording.answers for row in answer["Items"].rows]
    assert rows == page.items
    assert [type(row) for row in rows] == [Note] * 9


def test_a_count_that_changed_since_the_last_page_is_read_as_stored_items_until_positions_fit(world: World) -> None:
    world.counts, of = Counts(16), tenant()
    notes = [Note(tenant=of, id=f"{n:02d}") for n in range(64)]
    world.collection().batch_write(put=notes)
    first = world.collection().list({"tenant": of}, limit=3)
    world.resize(notes, 4)
    recording = RecordingTransport(world.transport)

    pages = list(world.collection(through=recording).pages({"tenant": of}, limit=10, cursor=first.cursor))

    assert all(isinstance(answer["Items"], list) for answer in recording.answers)
    assert sorted(item.id for page in [first, *pages] for item in page.items) == [note.id for note in notes]
