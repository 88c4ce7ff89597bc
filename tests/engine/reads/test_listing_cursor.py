"""Cursors on the engine survive writes, other page sizes and resizes, but no other change."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Collection, Filter
from dynashard.errors import InvalidCursorError
from dynashard.placement import UNSHARDED
from tests.depth import examples
from tests.engine.reads.listing_world import (
    INDEXES,
    ORDERS,
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

DIRECTIONS = ["asc", "desc"]


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(DIRECTIONS),
    index=st.sampled_from([None, *INDEXES]),
)
def test_lasting_items_are_listed_once_while_others_are_created_and_deleted(
    world: World, *, seed: int, order: str, direction: str, index: str | None
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(4, 4)
    collection = world.collection()
    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}
    staying = [note for note in _lasting(random, 60, of) if index is None or note.group == "g"]
    passing = _lasting(random, 60, of)
    collection.batch_write(put=[*staying, *passing[:30]])
    seen: list[str] = []

    cursor: str | None = None
    while True:
        page = collection.list(
            partition,
            order=order,
            direction=direction,
            index=index,
            limit=random.choice([1, 5, 11]),
            cursor=cursor,
        )
        seen += [item.id for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        some = random.sample(passing, 6)
        collection.batch_write(put=some[:3], delete=[{"tenant": of, "id": note.id} for note in some[3:]])

    lasting = {note.id for note in staying}
    assert sorted(each for each in seen if each in lasting) == sorted(lasting)


@settings(max_examples=examples(40))
@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(DIRECTIONS),
    filtered=st.booleans(),
    begun=st.sampled_from([UNSHARDED, 1, 2, 4, 16, 32]),
)
def test_a_cursor_from_any_shard_count_continues_under_any_other(
    world: World, *, seed: int, order: str, direction: str, filtered: bool, begun: int
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(begun)
    notes = _lasting(random, random.randrange(100), of)
    collection = world.collection()
    collection.batch_write(put=notes)
    filters = [Filter("kept", "=", value=True)] if filtered else []
    seen: list[str] = []

    cursor: str | None = None
    while True:
        page = collection.list(
            {"tenant": of},
            order=order,
            direction=direction,
            limit=random.choice([3, 8, 20]),
            cursor=cursor,
            filters=filters,
        )
        seen += [item.id for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        if random.random() < 0.5:
            world.resize(notes, random.choice([UNSHARDED, 1, 2, 4, 8, 16, 32]))

    assert sorted(seen) == sorted(note.id for note in notes if note.kept or not filtered)
    assert order != "ordered" or seen == sorted(seen, reverse=direction == "desc")


@pytest.mark.parametrize("order", ORDERS)
def test_a_listing_begun_before_its_partition_was_sharded_continues(world: World, order: str) -> None:
    of, world.counts = tenant(), Counts(UNSHARDED)
    notes = _lasting(Random(3), 50, of)
    collection = world.collection()
    collection.batch_write(put=notes)

    first = collection.list({"tenant": of}, order=order, limit=20)
    world.resize(notes, 8)
    rest = [item for page in collection.pages({"tenant": of}, order=order, cursor=first.cursor) for item in page.items]

    assert sorted(item.id for item in [*first.items, *rest]) == sorted(note.id for note in notes)


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"direction": "desc"},
    {"order": "ordered"},
    {"order": "shard"},
    {"prefix": "a"},
    {"prefix": "b"},
    {"start": "a"},
    {"end": "a"},
    {"filters": [Filter("kept", "=", value=True)]},
    {"filters": [Filter("kept", "=", value=False)]},
    {"filters": [Filter("size", "=", 0)]},
    {"filters": [Filter("size", "<", 10**30)]},
    {"filters": [Filter("tags", "contains", "x")]},
]


def test_a_cursor_is_refused_for_another_query(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    collection.batch_write(put=_lasting(Random(1), 60, of))
    collection.batch_write(put=_lasting(Random(2), 60, f"{of}2"))
    cursor = collection.list({"tenant": of}, limit=1).cursor

    assert collection.list({"tenant": of}, limit=2, fields=["id"], cursor=cursor).items
    for question in QUESTIONS[1:]:
        _refused(collection, {"tenant": of}, cursor, **question)
    _refused(collection, {"tenant": f"{of}2"}, cursor)
    _refused(world.collection(BareNote), {"tenant": of}, cursor)
    for index in INDEXES:
        _refused(collection, {"tenant": of, "group": "g"}, cursor, index=index)


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_a_cursor_is_bound_to_its_query(world: World, asked: dict[str, Any]) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    notes = [
        Note(tenant=of, id=f"{letter}{n}", kept=n % 2 == 0, size=0, tags={"x", "y"})
        for letter in "Aab"
        for n in range(9)
    ]
    collection.batch_write(put=notes)
    cursor = collection.list({"tenant": of}, limit=1, **asked).cursor
    assert cursor is not None

    for other in QUESTIONS:
        if other is not asked:
            _refused(collection, {"tenant": of}, cursor, **other)
    assert collection.list({"tenant": of}, limit=1, cursor=cursor, **asked).items


def test_a_filter_by_a_set_is_the_same_query_in_any_order(world: World) -> None:
    of, world.counts = tenant(), Counts(2)
    collection = world.collection()
    collection.batch_write(put=[Note(tenant=of, id=f"{n}", tags={"x", "y", "z"}) for n in range(9)])

    cursor = collection.list({"tenant": of}, limit=1, filters=[Filter("tags", "=", ["x", "y", "z"])]).cursor
    page = collection.list({"tenant": of}, cursor=cursor, filters=[Filter("tags", "=", {"z", "y", "x"})])

    assert len(page.items) == 8


@given(text=st.text() | st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", max_size=120))
@pytest.mark.parametrize("order", ORDERS)
def test_no_arbitrary_text_is_accepted_as_a_cursor(world: World, order: str, text: str) -> None:
    _refused(world.collection(), {"tenant": "t"}, text, order=order)


def test_nothing_is_sent_for_a_cursor_that_is_refused(world: World) -> None:
    recording = RecordingTransport(world.transport)

    _refused(world.collection(through=recording), {"tenant": "t"}, "")

    assert recording.requests == []


def test_a_cursor_survives_key_rotation_until_its_key_is_removed(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    old, new = "an-older-cursor-key", "the-newest-cursor-key"
    before, during, after = (world.collection(cursor_keys=keys) for keys in ([old], [new, old], [new]))
    before.batch_write(put=_lasting(Random(1), 30, of))

    cursor = before.list({"tenant": of}, limit=3).cursor
    page = during.list({"tenant": of}, limit=3, cursor=cursor)

    assert page.items
    assert after.list({"tenant": of}, limit=3, cursor=page.cursor).items
    _refused(after, {"tenant": of}, cursor)
    _refused(before, {"tenant": of}, page.cursor)


def test_a_listing_by_modulo_placement_continues_with_its_count(world: World) -> None:
    of = tenant()
    collection = world.collection(ModuloNote)
    collection.batch_write(put=[ModuloNote(tenant=of, id=f"{n:03d}") for n in range(50)])

    first = collection.list({"tenant": of}, limit=20)
    rest = collection.list({"tenant": of}, cursor=first.cursor)

    assert sorted(item.id for item in [*first.items, *rest.items]) == [f"{n:03d}" for n in range(50)]


@pytest.mark.parametrize("order", ["round_robin", "shard"])
def test_a_cursor_by_modulo_placement_is_refused_once_the_count_has_changed(world: World, order: str) -> None:
    of, world.counts = tenant(), Counts(modulo_count=6)
    collection = world.collection(ModuloNote)
    collection.batch_write(put=[ModuloNote(tenant=of, id=f"{n:03d}") for n in range(50)])

    cursor = collection.list({"tenant": of}, limit=20, order=order).cursor
    world.counts.modulo_count = 8

    _refused(collection, {"tenant": of}, cursor, order=order)


def _lasting(random: Random, size: int, of: str) -> list[Note]:
    return [note.model_copy(update={"expires_at": None}) for note in some_notes(random, size, of=of)]


def _refused(collection: Collection[Any], partition: dict[str, Any], cursor: str | None, **asked: Any) -> None:
    with pytest.raises(InvalidCursorError) as raised:
        collection.list(partition, cursor=cursor, **asked)
    assert raised.value.field == "cursor"


def test_a_prefix_is_case_sensitive(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    collection.batch_write(
        put=[Note(tenant=of, id=f"{letter}{n}", kept=True, size=0) for letter in "Aa" for n in range(9)]
    )

    for order in ("round_robin", "ordered", "shard"):
        listed = [
            note.id
            for page in collection.pages({"tenant": of}, prefix="a", order=order, limit=1)
            for note in page.items
        ]
        assert sorted(listed) == [f"a{n}" for n in range(9)]
    assert collection.count({"tenant": of}, prefix="a") == 9
