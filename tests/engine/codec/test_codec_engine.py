"""The codec against the engine: values are read back equal, and sizes and units are those that are billed."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.codec import decode_value, encode_value, item_size
from dynashard.codec.size import value_size
from dynashard.errors import InvalidValueError
from dynashard.schema import MARKER_BYTES, MAX_ITEM_BYTES, PK, SK
from tests.billing import read_units, write_units
from tests.depth import examples
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.storable_values import decimals, floats, values

pytestmark = pytest.mark.engine

Wire = dict[str, dict[str, Any]]

LARGEST = MAX_ITEM_BYTES + MARKER_BYTES

# A wire value of every type, and of every rule for the size of numbers.
NUMBERS = [
    "0",
    "-0.0",
    "7",
    "12",
    "123",
    "-123",
    "1000",
    "120",
    "1.0",
    "1.5",
    "100.5",
    "0.5",
    "0.00123",
    "-0.001",
    "12.345",
    "1E10",
    "1e-07",
    "1E-130",
    "9E125",
    "1.5E-130",
]
ATTRIBUTES: list[dict[str, Any]] = [
    {"S": ""},
    {"S": "text"},
    {"S": "größe \U0001f600"},
    {"B": ""},
    {"B": "aA=="},
    {"B": "aGk="},
    {"B": "aGkh"},
    {"BOOL": False},
    {"NULL": True},
    {"L": []},
    {"L": [{"S": "a"}, {"L": [{"N": "1"}]}]},
    {"M": {}},
    {"M": {"é": {"S": "a"}, "inner": {"M": {"b": {"BOOL": True}}}}},
    {"SS": ["", "a", "é"]},
    {"NS": ["1", "-123", "0.5"]},
    {"BS": ["", "aA==", "aGkh"]},
    *({"N": number} for number in NUMBERS),
    {"N": "1" * 38},
    {"N": "-" + "1" * 38},
    {"N": "-1." + "1" * 37},
    {"N": "1." + "0" * 60},
]


@pytest.fixture(scope="module")
def shared_table(create_table: Callable[[], str]) -> str:
    """One table for all examples: each writes an item of its own."""
    return create_table()


def new_item(**attributes: dict[str, Any]) -> Wire:
    return {PK: {"S": f"codec:{uuid4().hex}"}, SK: {"S": "1"}, **attributes}


def key_of(item: Wire) -> Wire:
    return {PK: item[PK], SK: item[SK]}


def filled_to(item: Wire, size: int) -> Wire:
    """Return the item, padded with text to the size."""
    missing = size - item_size({**item, "fill": {"S": ""}})
    assert missing >= 0
    return {**item, "fill": {"S": "x" * missing}}


def next_multiple(item: Wire, block: int) -> int:
    size = item_size({**item, "fill": {"S": ""}})
    return size + -size % block


def billed_write(dynamodb: RawDynamoDB, table: str, item: Wire) -> float:
    answer = dynamodb.call("PutItem", TableName=table, Item=item, ReturnConsumedCapacity="TOTAL")
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


def billed_get(dynamodb: RawDynamoDB, table: str, item: Wire, *, consistent: bool) -> float:
    answer = dynamodb.call(
        "GetItem", TableName=table, Key=key_of(item), ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL"
    )
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


def billed_query(dynamodb: RawDynamoDB, table: str, partition: dict[str, str], *, consistent: bool) -> float:
    answer = dynamodb.call(
        "Query",
        TableName=table,
        KeyConditionExpression="PK = :partition",
        ExpressionAttributeValues={":partition": partition},
        ConsistentRead=consistent,
        ReturnConsumedCapacity="TOTAL",
    )
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


def stored(dynamodb: RawDynamoDB, table: str, value: object) -> Any:
    item = new_item(value=encode_value(value))
    dynamodb.call("PutItem", TableName=table, Item=item)
    answer = dynamodb.call("GetItem", TableName=table, Key=key_of(item))
    return decode_value(answer["Item"]["value"])


@settings(max_examples=examples(60))
@given(values)
def test_every_storable_value_is_accepted_and_read_back_equal(
    dynamodb: RawDynamoDB, shared_table: str, value: object
) -> None:
    assert stored(dynamodb, shared_table, value) == value


@settings(max_examples=examples(60))
@given(decimals() | floats)
def test_every_number_in_range_is_read_back_exactly(
    dynamodb: RawDynamoDB, shared_table: str, number: Decimal | float
) -> None:
    came_back = stored(dynamodb, shared_table, number)

    assert type(number)(came_back) == number


@pytest.mark.parametrize(
    ("number", "wire"),
    [
        (Decimal("1E126"), "1E126"),
        (Decimal("9.9E-131"), "9.9E-131"),
        (10**38 + 1, str(10**38 + 1)),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
    ],
)
def test_a_number_that_the_codec_refuses_is_refused_by_the_engine_too(
    dynamodb: RawDynamoDB, shared_table: str, number: object, wire: str
) -> None:
    with pytest.raises(InvalidValueError):
        encode_value(number)

    assert dynamodb.refusal("PutItem", TableName=shared_table, Item=new_item(value={"N": wire}))


@pytest.mark.parametrize("innermost", [{"S": "deep"}, {"L": []}, {"M": {}}, {"SS": ["a"]}])
def test_the_engine_accepts_31_nested_lists_and_no_more(
    dynamodb: RawDynamoDB, shared_table: str, innermost: dict[str, Any]
) -> None:
    attribute = innermost
    for _ in range(31):
        attribute = {"L": [attribute]}

    dynamodb.call("PutItem", TableName=shared_table, Item=new_item(value=attribute))
    refusal = dynamodb.refusal("PutItem", TableName=shared_table, Item=new_item(value={"L": [attribute]}))

    assert "Nesting Levels" in refusal
    assert encode_value(decode_value(attribute)) == attribute
    with pytest.raises(InvalidValueError):
        encode_value([decode_value(attribute)])


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=str)
def test_a_write_is_billed_one_unit_more_from_the_first_byte_over_a_kilobyte(
    dynamodb: RawDynamoDB, shared_table: str, attribute: dict[str, Any]
) -> None:
    exact = filled_to(new_item(value=attribute), 1024)
    over = filled_to(new_item(value=attribute), 1025)

    assert billed_write(dynamodb, shared_table, exact) == write_units(1024) == 1
    assert billed_write(dynamodb, shared_table, over) == write_units(1025) == 2


@settings(max_examples=examples(60))
@given(values | decimals())
def test_the_size_of_any_value_is_exact_to_the_byte(dynamodb: RawDynamoDB, shared_table: str, value: object) -> None:
    attribute = encode_value(value)
    size = next_multiple(new_item(value=attribute), 1024)

    exact = billed_write(dynamodb, shared_table, filled_to(new_item(value=attribute), size))
    over = billed_write(dynamodb, shared_table, filled_to(new_item(value=attribute), size + 1))

    assert (exact, over) == (write_units(size), write_units(size + 1)) == (size / 1024, size / 1024 + 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=str)
def test_a_read_is_billed_one_block_more_from_the_first_byte_over_4_kb(
    dynamodb: RawDynamoDB, shared_table: str, attribute: dict[str, Any], *, consistent: bool
) -> None:
    for size in (4096, 4097):
        item = filled_to(new_item(value=attribute), size)
        dynamodb.call("PutItem", TableName=shared_table, Item=item)

        units = read_units(size, consistent=consistent)

        assert billed_get(dynamodb, shared_table, item, consistent=consistent) == units
        assert billed_query(dynamodb, shared_table, item[PK], consistent=consistent) == units


@pytest.mark.parametrize("consistent", [False, True])
@settings(max_examples=examples(10))
@given(sizes=st.lists(st.integers(min_value=200, max_value=3000), min_size=2, max_size=6))
def test_a_query_is_billed_for_the_sum_of_its_items_rounded_up_once(
    dynamodb: RawDynamoDB, shared_table: str, sizes: list[int], *, consistent: bool
) -> None:
    sizes.append(-sum(sizes) % 4096 + 4096)  # At the boundary, where an error of one byte is visible.
    partition = new_item()[PK]
    for number, size in enumerate(sizes):
        item = filled_to({PK: partition, SK: {"S": f"{number}"}}, size)
        dynamodb.call("PutItem", TableName=shared_table, Item=item)

    exact = billed_query(dynamodb, shared_table, partition, consistent=consistent)
    item = filled_to({PK: partition, SK: {"S": "0"}}, sizes[0] + 1)
    dynamodb.call("PutItem", TableName=shared_table, Item=item)
    over = billed_query(dynamodb, shared_table, partition, consistent=consistent)

    assert exact == read_units(sum(sizes), consistent=consistent)
    assert over == read_units(sum(sizes) + 1, consistent=consistent) > exact


def test_finding_nothing_is_billed_like_one_block(dynamodb: RawDynamoDB, shared_table: str) -> None:
    absent = new_item()

    for consistent in (False, True):
        units = read_units(0, consistent=consistent)
        assert billed_get(dynamodb, shared_table, absent, consistent=consistent) == units
        assert billed_query(dynamodb, shared_table, absent[PK], consistent=consistent) == units


@pytest.mark.parametrize("size", [1024, 1025, 4096, 4097])
def test_transactions_are_billed_double(dynamodb: RawDynamoDB, shared_table: str, size: int) -> None:
    item = filled_to(new_item(), size)

    written = dynamodb.call(
        "TransactWriteItems",
        TransactItems=[{"Put": {"TableName": shared_table, "Item": item}}],
        ReturnConsumedCapacity="TOTAL",
    )
    read = dynamodb.call(
        "TransactGetItems",
        TransactItems=[{"Get": {"TableName": shared_table, "Key": key_of(item)}}],
        ReturnConsumedCapacity="TOTAL",
    )

    assert written["ConsumedCapacity"][0]["CapacityUnits"] == write_units(size, transactional=True)
    assert read["ConsumedCapacity"][0]["CapacityUnits"] == read_units(size, transactional=True)


@pytest.mark.parametrize(("old", "new"), [(900, 3000), (3000, 900)])
def test_replacing_and_deleting_are_billed_for_the_larger_of_old_and_new(
    dynamodb: RawDynamoDB, shared_table: str, old: int, new: int
) -> None:
    item = new_item()
    dynamodb.call("PutItem", TableName=shared_table, Item=filled_to(item, old))

    replaced = billed_write(dynamodb, shared_table, filled_to(item, new))
    deleted = dynamodb.call("DeleteItem", TableName=shared_table, Key=key_of(item), ReturnConsumedCapacity="TOTAL")

    assert replaced == write_units(max(old, new))
    assert deleted["ConsumedCapacity"]["CapacityUnits"] == write_units(new)


@pytest.mark.parametrize(
    "value",
    [
        "é" * 1000,
        b"\x00" * 1001,
        [Decimal(f"-{number}.5") for number in range(1000)],
        {f"name {number}": {"inner": [None, True, number]} for number in range(300)},
        {f"member {number}" for number in range(500)},
        {number * 1000 for number in range(500)},
        {number.to_bytes(3) for number in range(500)},
    ],
    ids=["text", "binary", "numbers", "maps", "texts", "number set", "binary set"],
)
def test_the_largest_item_of_400_kb_is_accepted_and_one_byte_more_is_not(
    dynamodb: RawDynamoDB, shared_table: str, value: object
) -> None:
    item = new_item(value=encode_value(value))

    dynamodb.call("PutItem", TableName=shared_table, Item=filled_to(item, LARGEST))
    refusal = dynamodb.refusal("PutItem", TableName=shared_table, Item=filled_to(item, LARGEST + 1))

    assert value_size(item["value"]) > 1000
    assert refusal == "Item size has exceeded the maximum allowed size"
