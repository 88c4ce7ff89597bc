"""Filters as expressions of DynamoDB."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest

from dynashard import Entity, Key, Registry, definition
from dynashard.errors import InputError, InvalidQueryError, InvalidValueError
from dynashard.reads.filters import Filter, FilterExpression, filter_expression, filters_of

pytestmark = pytest.mark.unit


class Colour(StrEnum):
    RED = "red"


class Thing(
    Entity,
    name="filters.v1.Thing",
    key=Key("{tenant}", "{id}"),
    expires="expires_at",
    registry=Registry(),
):
    tenant: str
    id: str
    size: int = 0
    colour: Colour = Colour.RED
    tags: set[str] | None = None
    flags: list[bool] | None = None
    made: datetime | None = None
    owner: str | None = None
    required: str | None
    expires_at: datetime | None = None


THING = definition(Thing)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def expression(*filters: Filter) -> FilterExpression:
    return filter_expression(THING, filters)


def test_no_filters_make_no_expression() -> None:
    assert expression() == FilterExpression("", {}, {})


@pytest.mark.parametrize("given", ["age", 7, None])
def test_what_is_no_list_of_conditions_is_refused(given: object) -> None:
    with pytest.raises(InvalidQueryError, match=f"^filters is {given!r}; "):
        filters_of(given)


def test_filters_are_joined_and_keep_their_own_placeholders() -> None:
    found = expression(Filter("size", ">=", 2), Filter("size", "<", 10), Filter("owner", "exists", value=True))

    assert found.text == "#f0 >= :f0 AND #f1 < :f1 AND attribute_exists(#f2)"
    assert found.names == {"#f0": "size", "#f1": "size", "#f2": "owner"}
    assert found.values == {":f0": {"N": "2"}, ":f1": {"N": "10"}}


@pytest.mark.parametrize(
    ("condition", "text", "values"),
    [
        (Filter("size", "=", "7"), "#f0 = :f0", {":f0": {"N": "7"}}),
        (Filter("colour", "<>", "red"), "#f0 <> :f0", {":f0": {"S": "red"}}),
        (Filter("tags", "=", ["b", "a"]), "#f0 = :f0", {":f0": {"SS": ["a", "b"]}}),
        (Filter("tags", "contains", "a"), "contains(#f0, :f0)", {":f0": {"S": "a"}}),
        (Filter("colour", "begins_with", "r"), "begins_with(#f0, :f0)", {":f0": {"S": "r"}}),
        (Filter("flags", "contains", value=True), "contains(#f0, :f0)", {":f0": {"BOOL": True}}),
        (Filter("owner", "exists", value=False), "attribute_not_exists(#f0)", {}),
        (Filter("required", "=", None), "#f0 = :f0", {":f0": {"NULL": True}}),
    ],
    ids=str,
)
def test_a_value_is_written_as_the_field_stores_it(
    condition: Filter, text: str, values: dict[str, dict[str, Any]]
) -> None:
    found = expression(condition)

    assert (found.text, found.values) == (text, values)


def test_the_time_of_expiry_is_compared_where_it_is_stored() -> None:
    found = expression(Filter("expires_at", "<", NOON))

    assert found.names == {"#f0": "ExpiresAt"}
    assert found.values == {":f0": {"N": str(int(NOON.timestamp()))}}


@pytest.mark.parametrize(
    ("condition", "error", "says"),
    [
        (Filter("weight", "=", 1), InvalidQueryError, "no field weight"),
        (Filter("size", "like", 1), InvalidQueryError, "'like' is not a filter operator"),
        (Filter("size", "=", "many"), InvalidValueError, "valid integer"),
        (Filter("colour", "=", "mauve"), InvalidValueError, "red"),
        (Filter("owner", "=", "\ud800"), InputError, "surrogate"),
        (Filter("owner", "contains", ...), InvalidValueError, "cannot be stored"),
        (Filter("owner", "=", None), InvalidQueryError, "use exists"),
        (Filter("tags", "<", {"a"}), InvalidQueryError, "without an order"),
        (Filter("required", ">", None), InvalidQueryError, "without an order"),
        (Filter("size", "begins_with", 1), InvalidQueryError, "takes a text or bytes"),
        (Filter("expires_at", "begins_with", "2030"), InvalidQueryError, "use a comparison"),
        (Filter("expires_at", "contains", 2030), InvalidQueryError, "use a comparison"),
    ],
    ids=str,
)
def test_a_filter_that_dynamodb_refuses_is_refused_with_the_field(
    condition: Filter, error: type[InputError], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        expression(condition)

    assert raised.value.field == condition.field


def test_two_expressions_are_joined_even_if_one_is_empty() -> None:
    hidden = FilterExpression("hidden = :h", {"#h": "hidden"}, {":h": {"BOOL": True}})

    both = expression(Filter("size", "=", 1)) & hidden

    assert both.text == "#f0 = :f0 AND hidden = :h"
    assert both.names == {"#f0": "size", "#h": "hidden"}
    assert both.values == {":f0": {"N": "1"}, ":h": {"BOOL": True}}
    assert (expression() & hidden) == hidden
