"""The arguments of a listing, and the fingerprint that binds a cursor to them."""

from typing import Any, get_type_hints

import pytest

from dynashard import Entity, EntityDefinition, Filter, Index, Key, Registry, Shards, definition
from dynashard.errors import InvalidKeyError, InvalidQueryError
from dynashard.reads import Budget, Query, QueryArguments
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import filter_expression
from dynashard.transport.interface import Consumed

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


def test_omitted_arguments_have_defaults() -> None:
    asked = Query(PARCEL, HERE)

    assert (asked.index_definition, asked.slot, asked.partitions) == (None, None, ("query.v1.Parcel:t",))
    assert (asked.order, asked.forward, asked.limit, asked.bounds) == ("round_robin", True, 50, Bounds(high_open=True))
    assert asked == Query(PARCEL, HERE, filters=[], budget=Budget())


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
def test_an_impossible_query_is_refused_with_the_argument(asked: dict[str, Any], field: str, says: str) -> None:
    partition = {**HERE, "city": "Ulm"} if asked.get("index") == "by_city" else HERE

    with pytest.raises(InvalidQueryError, match=says) as raised:
        Query(PARCEL, partition, **asked)

    assert raised.value.field == field


@pytest.mark.parametrize("text", ["x" * 1025, "\ud800"])
@pytest.mark.parametrize("side", ["prefix", "start", "end"])
def test_a_bound_that_is_not_a_key_is_refused(side: str, text: str) -> None:
    asked: dict[str, Any] = {side: text}

    with pytest.raises(InvalidKeyError, match=side):
        Query(PARCEL, HERE, **asked)


def test_a_partition_has_its_own_fields_and_no_others() -> None:
    with pytest.raises(InvalidQueryError, match="id is not a field of the partition, tenant"):
        Query(PARCEL, {**HERE, "id": "1"})
    with pytest.raises(InvalidKeyError, match="city"):
        Query(PARCEL, HERE, index="by_city")
    with pytest.raises(InvalidKeyError, match="tenant"):
        Query(PARCEL, {"tenant": "t:1"})


def test_the_arguments_of_a_query_are_passed_on() -> None:
    types = get_type_hints(Query)
    arguments = [name for name in Query.__struct_fields__ if name not in ("entity", "partition", "former")]

    assert get_type_hints(QueryArguments) == {name: types[name] for name in arguments}


def test_an_index_of_an_entity_without_indexes_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="it has none"):
        Query(definition(Letter), HERE, index="by_city")


QUESTIONS: list[Query] = [
    Query(PARCEL, HERE),
    Query(definition(Letter), HERE),
    Query(PARCEL, {"tenant": "u"}),
    Query(PARCEL, {**HERE, "city": "Ulm"}, index="by_city"),
    Query(PARCEL, {**HERE, "city": "Ulm"}, index="by_town"),
    Query(PARCEL, HERE, order="ordered"),
    Query(PARCEL, HERE, order="shard"),
    Query(PARCEL, HERE, direction="desc"),
    Query(PARCEL, HERE, prefix="a"),
    Query(PARCEL, HERE, start="a"),
    Query(PARCEL, HERE, end="a"),
    Query(PARCEL, HERE, start="a", end="c"),
    Query(PARCEL, HERE, filters=[Filter("weight", "=", 1)]),
    Query(PARCEL, HERE, filters=[Filter("weight", "=", 2)]),
    Query(PARCEL, HERE, filters=[Filter("weight", "<", 2)]),
    Query(PARCEL, HERE, filters=[Filter("weight", "=", 10**30)]),
    Query(PARCEL, HERE, filters=[Filter("city", "=", "1")]),
    Query(PARCEL, HERE, filters=[Filter("id", "=", "1")]),
    Query(PARCEL, HERE, filters=[Filter("city", "exists", value=True)]),
    Query(PARCEL, HERE, filters=[Filter("city", "exists", value=False)]),
    Query(PARCEL, HERE, filters=[Filter("seal", "=", b"\xff")]),
    Query(PARCEL, HERE, filters=[Filter("weight", "=", 1), Filter("city", "=", "1")]),
]


def test_every_query_has_a_fingerprint_of_its_own() -> None:
    assert len({fingerprint(asked) for asked in QUESTIONS}) == len(QUESTIONS)


def test_page_size_fields_budget_and_consistency_may_change_between_pages() -> None:
    plain = Query(PARCEL, HERE)
    other = Query(PARCEL, HERE, limit=7, fields=["id"], budget=Budget(requests=1), consistent=True)

    assert fingerprint(plain) == fingerprint(other)


def test_equal_values_have_the_same_fingerprint_in_any_notation() -> None:
    one = Query(PARCEL, HERE, filters=[Filter("stamps", "=", {"x", "y", "z"}), Filter("weight", "=", 1)])
    other = Query(PARCEL, HERE, filters=[Filter("stamps", "=", ["z", "y", "x"]), Filter("weight", "=", "1")])

    assert fingerprint(one) == fingerprint(other)


def test_a_budget_is_spent_by_requests_or_by_units() -> None:
    budget = Budget(requests=3, read_units=10)

    assert budget.left(Consumed(read_units=9.5, requests=2))
    assert not budget.left(Consumed(read_units=9.5, requests=3))
    assert not budget.left(Consumed(read_units=10, requests=2))
