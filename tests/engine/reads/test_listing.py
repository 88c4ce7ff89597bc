"""Listings of a table: every item once, in order, to the end."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Entity, Filter, Key, Registry, Shards
from dynashard.errors import InvalidQueryError
from dynashard.reads import Budget
from dynashard.reads.bounds import Bounds
from tests.depth import examples
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import (
    NOW,
    ORDERS,
    BareNote,
    Counts,
    ModuloNote,
    Note,
    World,
    alive,
    fields_of,
    listed,
    some_notes,
    tenant,
)
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine


_FAMILY = Registry()


class Team(
    Entity, name="listing.v1.Team", key=Key("{tenant}", "team#{id}", prefix="fam"), shards=Shards(4), registry=_FAMILY
):
    tenant: str
    id: str


class Member(
    Entity,
    name="listing.v1.Member",
    key=Key("{tenant}", "member#{id}", prefix="fam"),
    shards=Shards(4),
    registry=_FAMILY,
):
    tenant: str
    id: str


def in_order(items: list[Any], direction: str) -> bool:
    keys = [item.id for item in items]
    return keys == sorted(keys, reverse=direction == "desc")


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the parameters of a listing."""
    asked: dict[str, Any] = {
        "order": draw(st.sampled_from(ORDERS)),
        "direction": draw(st.sampled_from(["asc", "desc"])),
        "consistent": draw(st.booleans()),
    }
    span = draw(st.sampled_from(["all", "prefix", "start", "end", "range"]))
    if span == "prefix":
        asked["prefix"] = draw(st.sampled_from(["a", "b", "ba", "ü", "x", "a4"]))
    if span in ("start", "range"):
        asked["start"] = draw(st.sampled_from(["a", "a5", "b"]))
    if span in ("end", "range"):
        asked["end"] = draw(st.sampled_from(["b", "b5", "ba", "ü"]))
    if draw(st.booleans()):
        asked["filters"] = [Filter("kept", "=", value=True)]
    return asked


def answers(note: Any, asked: dict[str, Any]) -> bool:
    """Return whether a listing must contain a note."""
    return (
        alive(note)
        and note.id.startswith(asked.get("prefix", ""))
        and note.id >= asked.get("start", "")
        and ("end" not in asked or note.id < asked["end"])
        and (note.kept or not asked.get("filters"))
    )


@settings(max_examples=examples(120))
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(0, 200),
    count=st.sampled_from([1, 2, 4, 16, 64]),
    asked=questions(),
    limits=st.sampled_from([[1, 2, 5], [7, 50], [50], [1000]]),
)
def test_every_matching_item_is_listed_once_and_the_listing_ends(
    world: World, *, seed: int, size: int, count: int, asked: dict[str, Any], limits: list[int]
) -> None:
    random, of = Random(seed), tenant()
    world.counts.count = count
    notes = some_notes(random, size if limits != [1, 2, 5] else size // 5, of=of)
    collection = world.collection()
    collection.batch_write(put=notes)

    items = listed(collection, {"tenant": of}, lambda: random.choice(limits), **asked)

    assert fields_of(items) == fields_of(note for note in notes if answers(note, asked))
    assert asked["order"] != "ordered" or in_order(items, asked["direction"])


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from([BareNote, ModuloNote]),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(["asc", "desc"]),
)
def test_unsharded_and_modulo_layouts_list_alike(
    world: World, seed: int, model: Any, order: str, direction: str
) -> None:
    random, of = Random(seed), tenant()
    notes = [model(tenant=of, id=f"{random.random():.9f}") for _ in range(random.randrange(120))]
    collection = world.collection(model)
    collection.batch_write(put=notes)

    items = listed(collection, {"tenant": of}, lambda: random.choice([3, 20, 100]), order=order, direction=direction)

    assert fields_of(items) == fields_of(notes)
    assert (order != "ordered" and model is ModuloNote) or in_order(items, direction)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_items_beyond_a_megabyte_a_shard_are_listed_once(world: World, order: str, direction: str) -> None:
    of, world.counts = tenant(), Counts(2)
    recording = RecordingTransport(world.transport)
    collection = world.collection(through=recording)
    notes = [Note(tenant=of, id=f"{n:03d}", text="x" * 300_000) for n in range(18)]
    for note in notes:
        collection.create(note)
    recording.clear()

    items = listed(collection, {"tenant": of}, lambda: 14, order=order, direction=direction)

    assert sorted(item.id for item in items) == [note.id for note in notes]
    assert order != "ordered" or in_order(items, direction)
    # The engine has cut an answer before its limit.
    assert any(
        answer["Count"] < request["Limit"] and "LastEvaluatedKey" in answer
        for request, answer in zip(recording.requests, recording.answers, strict=True)
    )


@pytest.mark.parametrize("order", ORDERS)
def test_chosen_fields_are_listed_alone_with_unchanged_cursors(world: World, order: str) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    notes = [n for n in some_notes(Random(5), 40, of=of) if alive(n)]
    collection.batch_write(put=notes)

    items = listed(collection, {"tenant": of}, lambda: 7, order=order, fields=["id", "size", "expires_at"])

    assert sorted(items, key=lambda item: item["id"]) == [
        {"id": note.id, "size": 0, "expires_at": note.expires_at} for note in sorted(notes, key=lambda n: n.id)
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_members_of_another_type_are_skipped_unless_asked_for(world: World, order: str) -> None:
    of = tenant()
    world.counts = Counts(4)
    teams = [Team(tenant=of, id=f"{n:02d}") for n in range(30)]
    members = [Member(tenant=of, id=f"{n:02d}") for n in range(30)]
    world.collection(Team).batch_write(put=teams)
    world.collection(Member).batch_write(put=members)

    only_teams = listed(world.collection(Team), {"tenant": of}, lambda: 4, order=order)
    both = listed(world.collection(Team, Member), {"tenant": of}, lambda: 7, order=order)

    assert fields_of(only_teams) == fields_of(teams)
    assert {type(item) for item in only_teams} == {Team}
    for model, stored in ((Team, teams), (Member, members)):
        assert fields_of(item for item in both if type(item) is model) == fields_of(stored)


def test_a_listing_of_another_tenant_shows_nothing(world: World) -> None:
    of = tenant()
    world.collection().batch_write(put=some_notes(Random(1), 20, of=of))

    for order in ORDERS:
        assert listed(world.collection(), {"tenant": of[:-1]}, lambda: 10, order=order) == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("budget", [Budget(requests=1), Budget(read_units=0.1), Budget(requests=0)])
def test_the_smallest_budget_makes_progress_if_no_item_passes_the_filter(
    world: World, order: str, budget: Budget
) -> None:
    of, world.counts = tenant(), Counts(4)
    recording = RecordingTransport(world.transport)
    collection = world.collection(through=recording)
    collection.batch_write(put=[Note(tenant=of, id=f"{n:03d}", kept=n == 399) for n in range(400)])
    filters = [Filter("kept", "=", value=True)]
    items, pages = [], 0
    recording.clear()

    for page in collection.pages({"tenant": of}, order=order, limit=10, filters=filters, budget=budget):
        items += page.items
        pages += 1
        assert page.rounds == 1

    assert [item.id for item in items] == ["399"]
    # A Query with a filter looks at 40 items at least: a page and its widest reading.
    assert 1 < pages <= 400 // 10 + 8
    assert order == "ordered" or set(recording.waves) == {1}


def test_a_page_reports_its_consumption(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    recording = RecordingTransport(world.transport)
    collection = world.collection(through=recording)
    collection.batch_write(put=[Note(tenant=of, id=f"{n:03d}", text="x" * 900) for n in range(100)])
    recording.clear()

    page = collection.list({"tenant": of}, order="ordered", limit=60)

    assert page.consumed.requests == len(recording.requests)
    assert page.consumed.read_units == recording.read_units > 0
    assert page.rounds == len(recording.waves)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"order": "sideways"}, "order"),
        ({"direction": "up"}, "direction"),
        ({"index": "by_size"}, "index"),
        ({"index": "by_rank", "consistent": True}, "consistent"),
        ({"prefix": "a", "start": "b"}, "prefix"),
        ({"prefix": ""}, "prefix"),
        ({"start": "b", "end": "a"}, "end"),
        ({"fields": ["id", "colour"]}, "fields"),
        ({"filters": [Filter("colour", "=", "red")]}, "colour"),
    ],
)
def test_an_impossible_query_is_refused_before_anything_is_sent(
    world: World, asked: dict[str, Any], field: str
) -> None:
    recording = RecordingTransport(world.transport)
    partition = {"tenant": "t", "group": "g"} if asked.get("index") == "by_rank" else {"tenant": "t"}

    with pytest.raises(InvalidQueryError) as raised:
        world.collection(through=recording).list(partition, **asked)

    assert raised.value.field == field
    assert recording.requests == []


EDGES = ["a", "b", "\0", "\x7f", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
edge_texts = st.text(st.sampled_from(EDGES), min_size=1, max_size=3)


@settings(max_examples=examples(40))
@given(
    keys=st.sets(edge_texts, max_size=20),
    low=st.none() | edge_texts,
    high=st.none() | edge_texts,
    low_open=st.booleans(),
    high_open=st.booleans(),
    forward=st.booleans(),
)
def test_a_condition_together_with_contains_is_exact_on_the_engine(
    world: World,
    dynamodb: RawDynamoDB,
    *,
    keys: set[str],
    low: str | None,
    high: str | None,
    low_open: bool,
    high_open: bool,
    forward: bool,
) -> None:
    bounds = Bounds(low, high, low_open, high_open)
    partition = tenant()
    for key in keys:
        dynamodb.call("PutItem", TableName=world.table, Item={"PK": {"S": partition}, "SK": {"S": key}})
    if bounds.empty:
        return

    condition, values = bounds.condition("SK", forward=forward)
    answer = dynamodb.call(
        "Query",
        TableName=world.table,
        KeyConditionExpression=f"PK = :partition AND {condition}" if condition else "PK = :partition",
        ExpressionAttributeValues={":partition": {"S": partition}, **values},
        ScanIndexForward=forward,
    )

    found = [item["SK"]["S"] for item in answer["Items"]]
    assert [key for key in found if bounds.contains(key)] == sorted(
        (key for key in keys if bounds.contains(key)), reverse=not forward
    )


def test_sort_keys_of_the_largest_size_can_be_bounds(world: World) -> None:
    of, world.counts = tenant(), Counts(2)
    longest = "a" * 1023 + "\x7f"
    notes = [Note(tenant=of, id=longest), Note(tenant=of, id="a" * 1023 + "b"), Note(tenant=of, id="b")]
    collection = world.collection()
    collection.batch_write(put=notes)

    for order in ORDERS:
        for direction in ("asc", "desc"):
            asked = {"order": order, "direction": direction}
            within = listed(collection, {"tenant": of}, lambda: 1, prefix=longest, **asked)
            below = listed(collection, {"tenant": of}, lambda: 1, start="a", end=longest, **asked)
            assert [item.id for item in within] == [longest]
            assert [item.id for item in below] == [notes[1].id]


def test_items_that_expire_during_a_listing_are_not_listed(world: World) -> None:
    of, world.counts = tenant(), Counts(2)
    collection = world.collection()
    collection.batch_write(put=[Note(tenant=of, id=f"{n}", expires_at=NOW) for n in range(5)])

    for order in ORDERS:
        page = collection.list({"tenant": of}, order=order)
        assert (page.items, page.cursor) == ([], None)


def test_an_ordered_page_is_complete_if_all_that_its_first_round_read_has_expired(world: World) -> None:
    of, world.counts = tenant(), Counts(4)
    collection = world.collection()
    gone = [Note(tenant=of, id=f"a{n:02}", expires_at=NOW) for n in range(40)]
    collection.batch_write(put=[*gone, *(Note(tenant=of, id=f"b{n:02}") for n in range(40))])

    for limit in (1, 3, 7):
        page = collection.list({"tenant": of}, order="ordered", limit=limit)
        assert [item.id for item in page] == [f"b{n:02}" for n in range(limit)]
