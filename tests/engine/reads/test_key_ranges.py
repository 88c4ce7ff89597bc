"""Filters on the first sort field choose the same items as filters alone, from the range of keys that they name."""

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import StringConstraints

from dynashard import Dynashard, Entity, Index, Key, Registry, Shards
from dynashard.errors import InvalidCursorError
from dynashard.reads import Query
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.depth import examples
from tests.engine.reads.listing_world import CURSOR_KEYS
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

BEGIN: Final = datetime(2030, 1, 1, tzinfo=UTC)
DAYS: Final = 6
NAMES: Final = ("a", "a!", "a b", "ab", "abc", "b", "b-", "é")
"""Some sort between a shorter one and its separator."""
HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "in": lambda value, members: value in members,
    "prefix": lambda value, start: value.startswith(start),
}


class Visit(
    Entity,
    name="range.v1.Visit",
    key=Key("{tenant}", "at_{at}#{seq:03d}"),
    shards=Shards(4),
    indexes=[
        Index("GSI1", "by_name", partition="{tenant}", sort="{name}#{at}", shards=Shards(2)),
        Index("GSI2", "by_seq", partition="{tenant}", sort="{seq:03d}"),
        Index("GSI3", "by_tail", partition="{tenant}", sort="{name}"),
    ],
    registry=Registry(),
):
    tenant: str
    at: datetime
    seq: int
    name: str


class Guest(
    Entity,
    name="range.v1.Guest",
    key=Key("{tenant}", "{id}"),
    indexes=[
        Index("GSI1", "by_email", partition="{tenant}", sort="{email}"),
        Index("GSI2", "by_both", partition="{tenant}", sort="{email}#{id}"),
    ],
    registry=Registry(),
):
    tenant: str = "abc"
    id: str
    email: Annotated[str, StringConstraints(to_lower=True, min_length=2)]


VISITS: Final = [
    Visit(tenant="abc", at=BEGIN + timedelta(days=number % DAYS), seq=number, name=NAMES[number % len(NAMES)])
    for number in range(48)
]
moments = st.integers(-1, DAYS).map(lambda days: BEGIN + timedelta(days=days))
names = st.sampled_from(["", *NAMES, "a#", "zz"])
values = {"at": moments, "seq": st.integers(0, 60), "name": names.filter(bool)}


def conditions_on(field: str) -> st.SearchStrategy[tuple[str, str, Any]]:
    words = ["gt", "gte", "lt", "lte", "eq", "ne", "in", *(["prefix"] if field == "name" else [])]

    def with_value(word: str) -> st.SearchStrategy[tuple[str, str, Any]]:
        value = st.lists(values[field], min_size=1, max_size=3) if word == "in" else values[field]
        return st.tuples(st.just(field), st.just(word), value)

    return st.sampled_from(words).flatmap(with_value)


@pytest.fixture(scope="module")
def recording(transport: Transport) -> RecordingTransport:
    return RecordingTransport(transport)


@pytest.fixture(scope="module")
def db(recording: RecordingTransport, create_table: Any) -> Dynashard:
    db = Dynashard(recording, table=create_table(), topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
    db.collection(Visit).batch_write(put=VISITS)
    return db


def expected(conditions: list[tuple[str, str, Any]]) -> set[int]:
    return {
        visit.seq
        for visit in VISITS
        if all(HOLDS[word](getattr(visit, field), value) for field, word, value in conditions)
    }


@settings(max_examples=examples(2000), deadline=None)
@given(
    conditions=st.lists(st.sampled_from(sorted(values)).flatmap(conditions_on), max_size=4),
    index=st.sampled_from([None, "by_name", "by_seq", "by_tail"]),
    paging=st.fixed_dictionaries(
        {
            "order": st.sampled_from(["round_robin", "ordered", "shard"]),
            "direction": st.sampled_from(["asc", "desc"]),
            "limit": st.integers(1, 30),
        }
    ),
)
def test_every_listing_has_the_items_that_the_conditions_choose(
    db: Dynashard, conditions: list[tuple[str, str, Any]], index: str | None, paging: dict[str, Any]
) -> None:
    visits = db.collection(Visit)
    options: dict[str, Any] = {"index": index, "filters": conditions}

    listed = [visit.seq for visit in visits.items(tenant="abc", **paging, **options)]

    assert len(listed) == len(set(listed))
    assert set(listed) == expected(conditions)
    assert {visit.seq for visit in visits.scan(tenant="abc", **options)} == expected(conditions)
    assert visits.count(tenant="abc", **options) == len(expected(conditions))


@pytest.mark.parametrize("word", ["gt", "gte", "lt", "lte"])
@pytest.mark.parametrize(("index", "field", "value"), [("by_tail", "name", "ab"), ("by_seq", "seq", 7)])
def test_a_range_has_its_bounds_if_the_operator_does(
    db: Dynashard, word: str, index: str, field: str, value: Any
) -> None:
    found = db.collection(Visit).items(tenant="abc", index=index, filters={field: {word: value}})

    assert {visit.seq for visit in found} == expected([(field, word, value)])


@pytest.mark.parametrize("index", [None, "by_email", "by_both"])
def test_a_range_compares_texts_as_a_filter_does(db: Dynashard, index: str | None) -> None:
    guests = db.collection(Guest)
    guests.batch_write([Guest(id=str(number), email=email) for number, email in enumerate(["ada", "bob", "cid"])])

    def found(word: str, text: str) -> list[str]:
        return [each.email for each in guests.items(tenant="abc", index=index, filters={"email": {word: text}})]

    assert (found("gte", "BOB"), found("gt", "Bob")) == (["bob", "cid"], ["cid"])
    assert (found("lte", "BOB"), found("lt", "Bob")) == (["ada", "bob"], ["ada"])


def test_a_range_may_begin_with_a_part_of_a_text(db: Dynashard) -> None:
    db.collection(Guest).put(id="1", email="bob")

    found = db.collection(Guest).items(tenant="abc", index="by_email", filters={"email": {"gte": "b", "lt": "c"}})

    assert [each.email for each in found] == ["bob"]


def queries_of(recording: RecordingTransport, list_them: Callable[[], object]) -> list[dict[str, Any]]:
    recording.clear()
    list_them()
    return [dict(each) for name, each in zip(recording.operations, recording.requests, strict=True) if name == "Query"]


@pytest.mark.parametrize(
    ("options", "condition", "filters"),
    [
        ({"at": {"gte": BEGIN, "lt": BEGIN + timedelta(days=1)}}, "BETWEEN :low AND :high", 0),
        ({"at": {"gt": BEGIN}}, "BETWEEN :low AND :high", 0),
        ({"seq": {"lte": 5}}, "SK < :high", 0),
        ({"name": {"prefix": "ab"}, "index": "by_name"}, "BETWEEN :low AND :high", 0),
        ({"name": {"prefix": "a#"}, "index": "by_name"}, "BETWEEN :low AND :high", 1),
        ({"name": {"gte": "ab"}, "index": "by_name"}, "SK >= :low", 1),
        ({"name": {"lt": "ab"}, "index": "by_name"}, ":partition", 1),
        ({"name": {"gte": "ab"}, "index": "by_tail"}, "SK >= :low", 0),
    ],
)
def test_a_range_of_keys_takes_the_place_of_a_filter_where_both_choose_the_same_items(
    db: Dynashard, recording: RecordingTransport, options: dict[str, Any], condition: str, filters: int
) -> None:
    sent = queries_of(recording, lambda: db.collection(Visit).list(tenant="abc", order="ordered", **options))

    assert all(condition.strip() in each["KeyConditionExpression"] for each in sent), sent
    assert all(("FilterExpression" in each) == bool(filters) for each in sent), sent


def test_an_operator_selects_the_index_whose_keys_it_ranges_over(db: Dynashard, recording: RecordingTransport) -> None:
    sent = queries_of(recording, lambda: db.collection(Visit).list(tenant="abc", seq={"gte": 40}))

    assert {each.get("IndexName") for each in sent} == {"GSI2"}


def test_contradicting_conditions_choose_nothing_and_read_nothing(db: Dynashard, recording: RecordingTransport) -> None:
    late, early = {"gt": BEGIN + timedelta(days=3)}, {"lt": BEGIN}

    sent = queries_of(recording, lambda: db.collection(Visit).list(tenant="abc", at={**late, **early}))

    assert sent == []


def test_a_cursor_is_bound_to_the_operators_of_its_query(db: Dynashard) -> None:
    visits = db.collection(Visit)
    cursor = visits.list(tenant="abc", limit=3, at={"gte": BEGIN + timedelta(days=1)}).cursor

    for other in ({"gte": BEGIN}, {"gt": BEGIN + timedelta(days=1)}, {"lte": BEGIN + timedelta(days=1)}):
        with pytest.raises(InvalidCursorError):
            visits.list(tenant="abc", limit=3, cursor=cursor, at=other)


@pytest.mark.parametrize("order", ["round_robin", "ordered", "shard"])
def test_a_cursor_of_an_earlier_release_continues_a_listing_that_it_filtered(db: Dynashard, order: str) -> None:
    visits, conditions = db.collection(Visit), [("at", ">=", BEGIN + timedelta(days=2))]
    earlier = Query(visits.entity, {"tenant": "abc"}, filters=conditions, limit=5, order=order)
    first = visits.listing.page(earlier)

    rest = [
        visit.seq
        for page in visits.pages(tenant="abc", filters=conditions, order=order, limit=5, cursor=first.cursor)
        for visit in page
    ]

    assert sorted([*(visit.seq for visit in first.items), *rest]) == sorted(expected([("at", "gte", conditions[0][2])]))


def test_a_count_up_to_a_number_says_whether_it_is_exact(db: Dynashard) -> None:
    visits = db.collection(Visit)

    assert [(int(n), n.exact) for n in (visits.count(tenant="abc", up_to=up_to) for up_to in (10, 48, 1000))] == [
        (10, False),
        (48, True),
        (48, True),
    ]
