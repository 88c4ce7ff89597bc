"""Listings while shard counts change: lasting items are listed exactly once in every phase."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Filter, RetryPolicy
from dynashard.runtime import Runtime
from tests.depth import examples
from tests.engine.reads.listing_world import INDEXES, ORDERS, Note, World, some_notes, tenant
from tests.engine.repository.moving_world import Amid, Resize

pytestmark = pytest.mark.engine

SPANS: list[dict[str, str]] = [{}, {}, {"prefix": "b"}, {"start": "a5"}, {"end": "b5"}, {"start": "a", "end": "b"}]
REMEMBERED = 5
"""The number of entries with equal index sort keys that a cursor over at most 8 shards remembers."""
WITHOUT_PAUSES = RetryPolicy(runtime=Runtime(sleep=lambda _: None))


def notes_of(random: Random, size: int, of: str, ranks: int) -> list[Note]:
    """Return notes that do not expire."""
    return [note.model_copy(update={"expires_at": None}) for note in some_notes(random, size, of=of, ranks=ranks)]


@st.composite
def questions(draw: st.DrawFn, spans: list[dict[str, str]]) -> dict[str, Any]:
    asked: dict[str, Any] = {"direction": draw(st.sampled_from(["asc", "desc"])), **draw(st.sampled_from(spans))}
    if draw(st.booleans()):
        asked["filters"] = [Filter("kept", "=", value=True)]
    return asked


def answers(note: Note, asked: dict[str, Any], key: str) -> bool:
    return (
        key.startswith(asked.get("prefix", ""))
        and key >= asked.get("start", "")
        and ("end" not in asked or key < asked["end"])
        and (note.kept or not asked.get("filters"))
    )


WORDS = {"prefix": "prefix", "start": "gte", "end": "lt"}


def by_operators(asked: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the same question with operators of the sort field, and of a filter."""
    filters: dict[str, Any] = {"kept": {"in": [True]}} if asked.get("filters") else {}
    if span := {word: asked[name] for name, word in WORDS.items() if name in asked}:
        filters[field] = span
    return {"filters": filters, **{name: value for name, value in asked.items() if name not in (*WORDS, "filters")}}


def paged(resize: Resize, partition: dict[str, Any], limits: list[int], **asked: Any) -> list[Note]:
    """Read all pages of a listing while the resize continues between and during them."""
    collection = resize.world.collection(through=Amid(resize.world.transport, resize), retry_policy=WITHOUT_PAUSES)
    if resize.random.random() < 0.5:
        asked = by_operators(asked, "rank" if asked.get("index") else "id")
    items: list[Note] = []
    cursor: str | None = None
    resize.go_on(resize.random.choice([0, 3, 12, 30]))
    for _ in range(3000):
        limit = resize.random.choice(limits)
        page = collection.list(partition, limit=limit, cursor=cursor, **asked)
        assert len(page.items) <= limit
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items
        resize.go_on(resize.random.choice([0, 0, 2, 20]))
    raise AssertionError("the listing does not end")


def check(resize: Resize, items: list[Any], asked: dict[str, Any], index: str | None) -> None:
    """Check that lasting items were listed once, and that no other than matching items were listed."""
    came = Counter(item.id for item in items)
    keys = {note.id: note.id if index is None else note.rank or "" for note in [*resize.staying, *resize.passing]}
    listed = [n for n in [*resize.staying, *resize.passing] if index is None or n.group is not None]
    asked_for = {note.id for note in listed if answers(note, asked, keys[note.id])}
    assert set(came) <= asked_for
    ties = Counter(keys[note.id] for note in listed)
    assert [key for key, times in came.items() if times > 1 and ties[keys[key]] <= REMEMBERED] == [], "twice"
    missed = [note.id for note in resize.staying if note.id in asked_for and not came[note.id]]
    assert missed == [], f"missed {missed}"


@settings(max_examples=examples(50))
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 10, 60, 150]),
    order=st.sampled_from(ORDERS),
    asked=questions(SPANS),
    limits=st.sampled_from([[1, 2, 5], [7, 50], [1000]]),
)
def test_a_listing_of_a_table_lists_lasting_items_once_while_its_count_changes(
    world: World, *, seed: int, size: int, order: str, asked: dict[str, Any], limits: list[int]
) -> None:
    random, of = Random(seed), tenant()
    notes = notes_of(random, size if limits[0] > 1 else size // 4, of, 3)
    resize = Resize(world, random, notes, index=False)

    items = paged(resize, {"tenant": of}, limits, order=order, **asked)

    check(resize, items, asked, None)
    ids = [item.id for item in items]
    assert order != "ordered" or ids == sorted(ids, reverse=asked["direction"] == "desc")


INDEX_SPANS: list[dict[str, str]] = [
    {},
    {},
    {"prefix": "r1"},
    {"start": "r1"},
    {"end": "r2"},
    {"start": "r0", "end": "r1"},
]


@settings(max_examples=examples(50))
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([1, 10, 60, 150]),
    order=st.sampled_from(ORDERS),
    asked=questions(INDEX_SPANS),
    ranks=st.sampled_from([3, 8, 20]),
    limits=st.sampled_from([[1, 2, 5], [7, 50], [1000]]),
    index=st.sampled_from(INDEXES),
    own=st.booleans(),
)
def test_a_listing_of_an_index_lists_lasting_items_once_while_counts_change(
    world: World,
    *,
    seed: int,
    size: int,
    order: str,
    asked: dict[str, Any],
    ranks: int,
    limits: list[int],
    index: str,
    own: bool,
) -> None:
    random, of = Random(seed), tenant()
    notes = notes_of(random, size if limits[0] > 1 else size // 4, of, ranks)
    resize = Resize(world, random, notes, index=own)

    items = paged(resize, {"tenant": of, "group": "g"}, limits, order=order, index=index, **asked)

    check(resize, items, asked, index)
    places = [item.rank or "" for item in items]
    assert order != "ordered" or places == sorted(places, reverse=asked["direction"] == "desc")
