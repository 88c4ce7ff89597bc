"""The sizes of items by the documented rules. Engine tests compare them with the billed sizes."""

from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given

from dynashard import definition
from dynashard.codec import encode_value, fits, item_size, require_fits
from dynashard.codec.size import value_size
from dynashard.errors import ItemTooLargeError
from dynashard.schema import MARKER_BYTES, MAX_ITEM_BYTES
from tests.every_field import Everything, items
from tests.storable_values import decimals

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("attribute", "size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "é"}, 2),
        ({"S": "\U0001f600"}, 4),
        ({"B": ""}, 0),
        ({"B": "aA=="}, 1),
        ({"B": "aGk="}, 2),
        ({"B": "aGkh"}, 3),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "a"}, {"S": "bc"}]}, 3 + 2 + 3),
        ({"M": {}}, 3),
        ({"M": {"é": {"S": "a"}}}, 3 + 1 + 2 + 1),
        ({"L": [{"L": []}]}, 3 + 1 + 3),
        ({"SS": ["a", "é"]}, 3),
        ({"NS": ["1", "-123"]}, 2 + 4),
        ({"BS": ["aGk=", "aA=="]}, 3),
    ],
)
def test_a_value_has_its_documented_size(attribute: dict[str, Any], size: int) -> None:
    assert value_size(attribute) == size


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("0", 1),
        ("-0.00", 1),
        ("0E500", 1),
        ("7", 2),
        ("12", 2),
        ("123", 3),
        ("-123", 4),
        ("1000", 2),
        ("120", 2),
        ("00120", 2),
        ("1.0", 2),
        ("1.5", 3),
        ("100.5", 4),
        ("0.5", 2),
        ("0.00123", 3),
        ("-0.001", 3),
        ("12.345", 4),
        ("1E10", 2),
        ("1e-130", 2),
        ("1" * 38, 20),
        ("-1." + "1" * 37, 22),
    ],
)
def test_a_number_has_the_size_that_was_measured_on_dynamodb(number: str, size: int) -> None:
    assert value_size({"N": number}) == size


@given(decimals())
def test_the_size_of_a_number_does_not_depend_on_how_it_is_written(number: Decimal) -> None:
    assert value_size(encode_value(number)) == value_size({"N": f"{number:f}"})


def test_the_size_of_an_item_is_that_of_its_names_and_values() -> None:
    item = {"PK": {"S": "a"}, "größe": {"N": "12"}}

    assert item_size(item) == 2 + 1 + 7 + 2


def test_an_item_without_room_for_a_relocation_marker_is_refused_with_its_size() -> None:
    largest = {"PK": {"S": "a" * (400 * 1024 - MARKER_BYTES - 2)}}
    larger = {"PK": {"S": "a" * (400 * 1024 - MARKER_BYTES - 1)}}

    require_fits(largest)
    with pytest.raises(ItemTooLargeError) as refused:
        require_fits(larger)
    assert refused.value.details == {"size": MAX_ITEM_BYTES + 1, "limit": MAX_ITEM_BYTES}


@given(items)
def test_the_json_of_an_item_is_never_shorter_than_its_size(item: Everything) -> None:
    wire = definition(Everything).encode(item.__dict__)

    assert len(orjson.dumps(wire)) >= item_size(wire)


def test_an_item_whose_json_is_too_long_may_fit() -> None:
    # Base64 takes a third more than the bytes that it stands for.
    binary = {"PK": {"B": "AAAA" * (MAX_ITEM_BYTES // 3 - 1)}}

    assert len(orjson.dumps(binary)) > MAX_ITEM_BYTES
    assert fits(binary)
