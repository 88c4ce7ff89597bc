"""Filters that the layer applies itself, to items behind relocation markers, agree with DynamoDB's."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.codec import encode_value
from dynashard.errors import EngineError
from dynashard.reads.matching import Term
from tests.depth import examples
from tests.engine.reads.listing_world import World

pytestmark = pytest.mark.engine

# The local engine's begins_with ignores case, unlike DynamoDB's.
texts = st.text("abü\U00010000\0", max_size=3)
numbers = st.sampled_from([0, 1, -1, 10, 10**20, 10**20 + 1]) | st.decimals(-2, 2, places=1)
binaries = st.binary(max_size=2)
scalars = texts | numbers | binaries | st.booleans() | st.none()
values = st.recursive(
    scalars
    | st.sets(texts, min_size=1, max_size=2)
    | st.sets(st.sampled_from([0, 1, 2]), min_size=1)
    | st.sets(binaries, min_size=1, max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
).map(encode_value)
ordered = (texts | numbers | binaries).map(encode_value)
starts = (texts | binaries).map(encode_value)
conditions = (
    st.tuples(st.sampled_from(["=", "<>"]), values)
    | st.tuples(st.sampled_from(["<", "<=", ">", ">="]), ordered)
    | st.tuples(st.just("begins_with"), starts)
    | st.tuples(st.just("contains"), scalars.map(encode_value))
)


def let_through(world: World, partition: str, text: str, *operands: dict[str, Any]) -> set[str]:
    """Return the sort keys that pass the engine's filter; the operands are `:v0`, `:v1` and so on."""
    values = {":pk": {"S": partition}} | {f":v{place}": operand for place, operand in enumerate(operands)}
    answer = world.transport.call(
        "Query",
        {
            "TableName": world.table,
            "KeyConditionExpression": "PK = :pk",
            "FilterExpression": text,
            "ExpressionAttributeNames": {"#a": "a"},
            "ExpressionAttributeValues": values,
        },
    )
    return {item["SK"]["S"] for item in answer["Items"]}


@settings(max_examples=examples(150))
@given(
    stored=st.lists(st.none() | values, min_size=1, max_size=8),
    asked=st.lists(conditions, min_size=1, max_size=8),
)
def test_a_condition_agrees_with_the_engine(
    world: World, stored: list[dict[str, Any] | None], asked: list[tuple[str, dict[str, Any]]]
) -> None:
    partition = uuid4().hex
    items: list[dict[str, Any]] = [
        {"PK": {"S": partition}, "SK": {"S": str(n)}} | ({} if value is None else {"a": value})
        for n, value in enumerate(stored)
    ]
    puts = [{"PutRequest": {"Item": item}} for item in items]
    world.transport.call("BatchWriteItem", {"RequestItems": {world.table: puts}})

    # Each condition is also tested with values like its own.
    for operator, value in [*asked, *[("=", each) for each in stored if each is not None]]:
        function = operator in ("begins_with", "contains")
        text = f"{operator}(#a, :v0)" if function else f"#a {operator} :v0"
        try:
            engine = let_through(world, partition, text, value)
        except EngineError:
            continue
        mine = {item["SK"]["S"] for item in items if Term("a", operator, value).holds(item)}
        assert mine == engine, (operator, value, stored)
    for operator, text in (("exists", "attribute_exists(#a)"), ("not_exists", "attribute_not_exists(#a)")):
        mine = {item["SK"]["S"] for item in items if Term("a", operator).holds(item)}
        assert mine == let_through(world, partition, text)
    null = {"NULL": True}
    for operator, text in (
        ("set", "attribute_exists(#a) AND #a <> :v0"),
        ("unset", "attribute_not_exists(#a) OR #a = :v0"),
    ):
        mine = {item["SK"]["S"] for item in items if Term("a", operator, null).holds(item)}
        assert mine == let_through(world, partition, text, null)
    members = [value for _, value in asked] + [value for value in stored if value is not None][:2]
    mine = {item["SK"]["S"] for item in items if Term("a", "in", {"L": members}).holds(item)}
    text = ", ".join(f":v{place}" for place in range(len(members)))
    assert mine == let_through(world, partition, f"#a IN ({text})", *members)
