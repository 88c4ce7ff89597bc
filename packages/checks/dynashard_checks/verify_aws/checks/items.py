"""Checks of single items: keys, sizes, numbers, conditions and units."""

from decimal import Decimal
from typing import Any, Final

from dynashard import schema
from dynashard.codec.encode import MAX_LEVELS
from dynashard.codec.numeric import MAX_DIGITS
from dynashard.transport.classification import MAX_STORED_ITEM_BYTES
from dynashard_checks.verify_aws.check import Check, Outcome, compare, dollars_of
from dynashard_checks.verify_aws.context import ACCEPTED, Answer, Context, answer_of

REFUSED: Final = "ValidationException"


def key(partition: str, sort: str = "1") -> dict[str, Any]:
    """Return a stored key of a scratch table."""
    return {schema.PK: {"S": partition}, schema.SK: {"S": sort}}


def _put(context: Context, table: str, item: dict[str, Any], **more: Any) -> Answer:
    return answer_of(context.client("dynamodb").put_item, TableName=table, Item=item, **more)


_KEY_SIZES: Final = {
    "largest": (schema.MAX_PARTITION_KEY_BYTES, schema.MAX_SORT_KEY_BYTES),
    "larger partition key": (schema.MAX_PARTITION_KEY_BYTES + 1, 1),
    "larger sort key": (1, schema.MAX_SORT_KEY_BYTES + 1),
}
"""The bytes of a partition key and a sort key."""
_KEY_CODES: Final = {"largest": ACCEPTED, "larger partition key": REFUSED, "larger sort key": REFUSED}


def key_sizes(context: Context) -> Outcome:
    """Put keys of the largest sizes, and of one byte more."""
    table = context.scratch.table("keys")
    seen = {name: _put(context, table, key("p" * pk, "s" * sk)).result for name, (pk, sk) in _KEY_SIZES.items()}
    return compare(_KEY_CODES, seen)


def index_key_sizes(context: Context) -> Outcome:
    """Put index keys of the largest sizes, and of one byte more."""
    table = context.scratch.table("index-keys", indexed=True)
    seen = {}
    for name, (pk, sk) in _KEY_SIZES.items():
        entry = {"GSI1PK": {"S": "p" * pk}, "GSI1SK": {"S": "s" * sk}}
        seen[name] = _put(context, table, key("a") | entry).result
    return compare(_KEY_CODES, seen)


def item_size(context: Context) -> Outcome:
    """Put an item of the largest size, and of one byte more."""
    table = context.scratch.table("size")
    overhead = len("PK") + len("a") + len("SK") + len("1") + len("V")
    sizes = {"largest": MAX_STORED_ITEM_BYTES, "one byte more": MAX_STORED_ITEM_BYTES + 1}
    seen = {
        name: _put(context, table, key("a") | {"V": {"S": "x" * (size - overhead)}}).result
        for name, size in sizes.items()
    }
    return compare({"largest": ACCEPTED, "one byte more": REFUSED}, seen)


def nesting(context: Context) -> Outcome:
    """Put an attribute of the most levels, and of one level more."""
    table = context.scratch.table("nesting")

    def value(levels: int) -> dict[str, Any]:
        return {"S": "x"} if levels == 1 else {"L": [value(levels - 1)]}

    levels = {"most levels": MAX_LEVELS, "one level more": MAX_LEVELS + 1}
    seen = {name: _put(context, table, key("a") | {"V": value(count)}).result for name, count in levels.items()}
    return compare({"most levels": ACCEPTED, "one level more": REFUSED}, seen)


def numbers(context: Context) -> Outcome:
    """Store numbers with the most digits, add to one of them, and put numbers that are out of range."""
    table, dynamodb = context.scratch.table("numbers"), context.client("dynamodb")
    longest = "1" * MAX_DIGITS
    seen: dict[str, Any] = {
        "most digits": _put(context, table, key("a") | {"V": {"N": longest}}).result,
        "one digit more": _put(context, table, key("b") | {"V": {"N": longest + "1"}}).result,
        "too large": _put(context, table, key("b") | {"V": {"N": "1E126"}}).result,
    }
    added = dynamodb.update_item(
        TableName=table,
        Key=key("a"),
        UpdateExpression="ADD V :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="ALL_NEW",
    )
    seen["exact sum"] = Decimal(added["Attributes"]["V"]["N"]) == Decimal(longest[:-1] + "2")
    return compare({"most digits": ACCEPTED, "one digit more": REFUSED, "too large": REFUSED, "exact sum": True}, seen)


def refused_condition(context: Context) -> Outcome:
    """Let a condition fail, and read the stored item in the refusal."""
    table = context.scratch.table("conditions")
    _put(context, table, key("a") | {"V": {"S": "stored"}})
    refused = _put(
        context,
        table,
        key("a") | {"V": {"S": "new"}},
        ConditionExpression="attribute_not_exists(PK)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    return compare(
        {"code": "ConditionalCheckFailedException", "item": "stored"},
        {"code": refused.code, "item": refused.document.get("Item", {}).get("V", {}).get("S")},
    )


def counted_members(context: Context) -> Outcome:
    """Let conditions judge whether a map has certain members and no others, and what is not a map or not stored."""
    table = context.scratch.table("members")
    values = {
        "same": {"M": {"a": {"N": "1"}, "b": {"NULL": True}}},
        "one more": {"M": {"a": {"N": "1"}, "b": {"N": "1"}, "c": {"N": "1"}}},
        "another": {"M": {"a": {"N": "1"}, "c": {"N": "1"}}},
        "none": {"NULL": True},
        "not stored": None,
    }
    seen = {}
    for name, value in values.items():
        _put(context, table, key("a") | ({"V": value} if value else {}))
        answer = _put(
            context,
            table,
            key("a"),
            ConditionExpression="NOT attribute_type(V, :map) OR "
            "size(V) = :two AND attribute_exists(V.a) AND attribute_exists(V.b)",
            ExpressionAttributeValues={":map": {"S": "M"}, ":two": {"N": "2"}},
        )
        seen[name] = answer.result
    refused = "ConditionalCheckFailedException"
    met = dict.fromkeys(("same", "none", "not stored"), ACCEPTED)
    return compare({**met, "one more": refused, "another": refused}, seen)


def list_places(context: Context) -> Outcome:
    """Update lists by the places of their members: a member of one, a removal of several, and additions at the end."""
    table, dynamodb = context.scratch.table("places"), context.client("dynamodb")

    def updated(expression: str, **values: str) -> list[str]:
        letters = {"L": [{"M": {"n": {"S": each}}} for each in "abcd"]}
        _put(context, table, key("a") | {"V": letters})
        given = {f":{name}": {"S": value} for name, value in values.items()}
        more = {"ExpressionAttributeValues": given} if given else {}
        answer = dynamodb.update_item(
            TableName=table, Key=key("a"), UpdateExpression=expression, ReturnValues="ALL_NEW", **more
        )
        return [each["M"]["n"]["S"] if "M" in each else each["S"] for each in answer["Attributes"]["V"]["L"]]

    return compare(
        {"member": ["a", "x", "c", "d"], "removed": ["a", "d"], "added": ["a", "b", "c", "d", "x", "y"]},
        {
            "member": updated("SET V[1].n = :x", x="x"),
            "removed": updated("REMOVE V[2], V[1]"),
            "added": updated("SET V[4] = :x, V[5] = :y", x="x", y="y"),
        },
    )


def units(context: Context) -> Outcome:
    """Compare reported units with the rounding of sizes to 1 KB and 4 KB."""
    table, dynamodb = context.scratch.table("units"), context.client("dynamodb")
    overhead = len("PK") + len("a") + len("SK") + len("1") + len("V")

    def written(size: int) -> float:
        item = key("a") | {"V": {"S": "x" * (size - overhead)}}
        answer = dynamodb.put_item(TableName=table, Item=item, ReturnConsumedCapacity="TOTAL")
        return float(answer["ConsumedCapacity"]["CapacityUnits"])

    def read(*, consistent: bool) -> float:
        answer = dynamodb.get_item(
            TableName=table, Key=key("a"), ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL"
        )
        return float(answer["ConsumedCapacity"]["CapacityUnits"])

    seen = {
        "write of 1,024 bytes": written(1024),
        "write of 1,025 bytes over 1,024": written(1025),
        "write of 4,096 bytes": written(4096),
        "consistent read of 4,096 bytes": read(consistent=True),
        "read of 4,096 bytes": read(consistent=False),
    }
    seen["write of 100 bytes over 4,096"] = written(100)
    transaction = dynamodb.transact_write_items(
        TransactItems=[{"Put": {"TableName": table, "Item": key("b")}}], ReturnConsumedCapacity="TOTAL"
    )
    seen["transaction of a small item"] = float(transaction["ConsumedCapacity"][0]["CapacityUnits"])
    return compare(
        dict(zip(seen, (1.0, 2.0, 4.0, 1.0, 0.5, 4.0, 2.0), strict=True)),
        seen,
    )


CHECKS: Final = (
    Check(
        "key-sizes",
        "a partition key has at most 2,048 bytes and a sort key 1,024; a longer one is refused",
        key_sizes,
        local=True,
    ),
    Check(
        "index-key-sizes", "keys of an index have the same limits, and a longer one refuses the write", index_key_sizes
    ),
    Check(
        "item-size",
        "an item has at most 400 KB, counting the names of its attributes",
        item_size,
        dollars=dollars_of(write_units=900),
        local=True,
    ),
    Check("nesting", "lists and maps have at most 32 levels, counting the value itself", nesting, local=True),
    Check(
        "numbers",
        "numbers have at most 38 digits and magnitudes below 1E+126, and are added exactly",
        numbers,
        local=True,
    ),
    Check(
        "refused-condition",
        "a failed condition returns the stored item if the request asks for it",
        refused_condition,
        local=True,
    ),
    Check(
        "counted-members",
        "a condition counts the members of a map and finds single ones, whatever else is stored there",
        counted_members,
        local=True,
    ),
    Check(
        "list-places",
        "an update changes, removes and adds members of a list by their places",
        list_places,
        local=True,
    ),
    Check(
        "units",
        "a write costs a unit for each KB of the larger version, a read one for each 4 KB, a transaction double",
        units,
        local=True,
    ),
)
