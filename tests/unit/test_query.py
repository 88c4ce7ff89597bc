"""What a caller asks of a listing, and what binds a cursor to it."""

from typing import Any

import pytest

from dynashard import Entity, EntityDefinition, Filter, Index, Key, Registry, Shards, definition
from dynashard.errors import InvalidKeyError, InvalidQueryError
from dynashard.reads import Budget, Order, Query, query
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import filter_expression
from dynashard.transport import Consumed

pytestmark = pytest.mark.unit


class Parcel(
    Entity,
    name="query.v1.Parcel",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_city", "{tenant}:{city}", "{id}"), Index("GSI2", "by_town", "{tenant}:{city}", "{id}")],
    registry=Registry(),
):
    tenant: str
    id: str
    city: str | None = None
    weight: int = 0
    stamps: set[str] | None = None
    seal: bytes = b""


class Letter(Entity, name="query.v1.Letter", key=Key("{tenant}", "{id}"), registry=Registry()):
    tenant: str
    id: str


PARCEL: EntityDefinition[Any] = definition(Parcel)
HERE = {"tenant": "t"}


def fingerprint(asked: Query) -> bytes:
    return asked.fingerprint(filter_expression(asked.entity, asked.filters))


def test_what_is_left_out_has_its_default() -> None:
    asked = query(PARCEL, HERE)

    assert asked == Query(
        entity=PARCEL,
        index=None,
        partition="query.v1.Parcel:t",
        bounds=Bounds(high_open=True),
        order=Order.ROUND_ROBIN,
        forward=True,
        limit=50,
    )


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        ({"limit": 0}, "limit", "from 1 to 1000"),
        ({"limit": 1001}, "limit", "from 1 to 1000"),
        ({"limit": True}, "limit", "from 1 to 1000"),
        ({"limit": "5"}, "limit", "from 1 to 1000"),
        ({"order": "random"}, "order", "round_robin, ordered, shard"),
        ({"direction": "ascending"}, "direction", "asc or desc"),
        ({"index": "by_weight"}, "index", "it has by_city, by_town"),
        ({"consistent": True, "index": "by_city"}, "consistent", "list the table"),
        ({"fields": ["id", "colour"]}, "fields", "no field colour"),
        ({"prefix": ""}, "prefix", "leave it out"),
        ({"start": ""}, "start", "leave it out"),
        ({"end": ""}, "end", "leave it out"),
        ({"prefix": "a", "start": "b"}, "prefix", "not both"),
        ({"prefix": "a", "end": "b"}, "prefix", "not both"),
        ({"start": "b", "end": "a"}, "end", "ends before it starts"),
    ],
    ids=str,
)
def test_a_question_that_cannot_be_is_refused_with_the_argument(asked: dict[str, Any], field: str, says: str) -> None:
    partition = {**HERE, "city": "Ulm"} if asked.get("index") == "by_city" else HERE

    with pytest.raises(InvalidQueryError, match=says) as raised:
        query(PARCEL, partition, **asked)

    assert raised.value.field == field


@pytest.mark.parametrize("text", ["x" * 1025, "\ud800"])
@pytest.mark.parametrize("side", ["prefix", "start", "end"])
def test_a_bound_that_is_no_key_is_refused(side: str, text: str) -> None:
    asked: dict[str, Any] = {side: text}

    with pytest.raises(InvalidKeyError, match=side):
        query(PARCEL, HERE, **asked)


def test_a_partition_has_its_own_fields_and_no_others() -> None:
    with pytest.raises(InvalidQueryError, match="id is no part of the partition, tenant"):
        query(PARCEL, {**HERE, "id": "1"})
    with pytest.raises(InvalidKeyError, match="city"):
        query(PARCEL, HERE, index="by_city")
    with pytest.raises(InvalidKeyError, match="tenant"):
        query(PARCEL, {"tenant": "t:1"})


def test_an_entity_without_indexes_says_so() -> None:
    with pytest.raises(InvalidQueryError, match="it has none"):
        query(definition(Letter), HERE, index="by_city")


QUESTIONS: list[Query] = [
    query(PARCEL, HERE),
    query(definition(Letter), HERE),
    query(PARCEL, {"tenant": "u"}),
    query(PARCEL, {**HERE, "city": "Ulm"}, index="by_city"),
    query(PARCEL, {**HERE, "city": "Ulm"}, index="by_town"),
    query(PARCEL, HERE, order="ordered"),
    query(PARCEL, HERE, order="shard"),
    query(PARCEL, HERE, direction="desc"),
    query(PARCEL, HERE, prefix="a"),
    query(PARCEL, HERE, start="a"),
    query(PARCEL, HERE, end="a"),
    query(PARCEL, HERE, start="a", end="c"),
    query(PARCEL, HERE, filters=[Filter("weight", "=", 1)]),
    query(PARCEL, HERE, filters=[Filter("weight", "=", 2)]),
    query(PARCEL, HERE, filters=[Filter("weight", "<", 2)]),
    query(PARCEL, HERE, filters=[Filter("weight", "=", 10**30)]),
    query(PARCEL, HERE, filters=[Filter("city", "=", "1")]),
    query(PARCEL, HERE, filters=[Filter("id", "=", "1")]),
    query(PARCEL, HERE, filters=[Filter("city", "exists", value=True)]),
    query(PARCEL, HERE, filters=[Filter("city", "exists", value=False)]),
    query(PARCEL, HERE, filters=[Filter("seal", "=", b"\xff")]),
    query(PARCEL, HERE, filters=[Filter("weight", "=", 1), Filter("city", "=", "1")]),
]


def test_every_question_has_a_fingerprint_of_its_own() -> None:
    assert len({fingerprint(asked) for asked in QUESTIONS}) == len(QUESTIONS)


def test_page_size_fields_budget_and_consistency_may_change_between_pages() -> None:
    plain = query(PARCEL, HERE)
    other = query(PARCEL, HERE, limit=7, fields=["id"], budget=Budget(requests=1), consistent=True)

    assert fingerprint(plain) == fingerprint(other)


def test_a_fingerprint_knows_equal_values_however_they_are_written() -> None:
    one = query(PARCEL, HERE, filters=[Filter("stamps", "=", {"x", "y", "z"}), Filter("weight", "=", 1)])
    other = query(PARCEL, HERE, filters=[Filter("stamps", "=", ["z", "y", "x"]), Filter("weight", "=", "1")])

    assert fingerprint(one) == fingerprint(other)


def test_a_budget_is_spent_by_requests_or_by_units() -> None:
    budget = Budget(requests=3, read_units=10)

    assert budget.left(Consumed(read_units=9.5, requests=2))
    assert not budget.left(Consumed(read_units=9.5, requests=3))
    assert not budget.left(Consumed(read_units=10, requests=2))
