"""Checks of Queries and Scans: what a page holds and costs, and where the next one begins."""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Final

from dynashard.reads.first_round import BLOCK_BYTES
from dynashard_checks.verify_aws.check import Check, Outcome, compare, dollars_of
from dynashard_checks.verify_aws.checks.items import key
from dynashard_checks.verify_aws.context import Context
from dynashard_checks.verify_aws.load import filler

_SMALL: Final = 1_000
_LARGE: Final = 60_000
_PAGE_BYTES: Final = 1024 * 1024
_SMALL_ITEMS: Final = 10
_LARGE_ITEMS: Final = 20
_ITEMS: Final = 5

Read = Callable[..., Mapping[str, Any]]


def bounds(context: Context) -> Outcome:
    """Query small items, with a filter that passes none of them, and more than 1 MB of large ones."""
    table, dynamodb = context.scratch.table("bounds"), context.client("dynamodb")

    def fill(partition: str, count: int, size: int) -> None:
        for number in range(count):
            item = key(partition, f"{number:03d}")
            used = sum(len(name) + len(value["S"]) for name, value in item.items())
            dynamodb.put_item(TableName=table, Item=item | filler(used, size))

    def query(partition: str, **more: Any) -> Mapping[str, Any]:
        values = {":pk": {"S": partition}, **more.pop("values", {})}
        answer: Mapping[str, Any] = dynamodb.query(
            TableName=table,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
            **more,
        )
        return answer

    fill("small", _SMALL_ITEMS, _SMALL)
    fill("large", _LARGE_ITEMS, _LARGE)
    whole, large = query("small"), query("large")
    filtered = query("small", FilterExpression="V = :none", values={":none": {"S": "none"}})
    blocks = float(ceil(_SMALL_ITEMS * _SMALL / BLOCK_BYTES))
    return compare(
        {
            "units of small items": blocks,
            "units with a filter that passes none": blocks,
            "count with that filter": 0,
            "a page ends near 1 MB": True,
            "and can be continued": True,
        },
        {
            "units of small items": _units(whole),
            "units with a filter that passes none": _units(filtered),
            "count with that filter": filtered["Count"],
            "a page ends near 1 MB": abs(len(large["Items"]) * _LARGE - _PAGE_BYTES) < _LARGE,
            "and can be continued": "LastEvaluatedKey" in large,
        },
    )


def _units(answer: Mapping[str, Any]) -> float:
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


def query_positions(context: Context) -> Outcome:
    """Continue a Query after an item that was deleted meanwhile."""
    query = context.client("dynamodb").query
    values = {":pk": {"S": "a"}}

    def read(**request: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = query(
            KeyConditionExpression="PK = :pk", ExpressionAttributeValues=values, ConsistentRead=True, **request
        )
        return answer

    return _positions(context, "query-positions", read)


def scan_positions(context: Context) -> Outcome:
    """Continue a Scan after an item that was deleted meanwhile."""
    scan = context.client("dynamodb").scan

    def read(**request: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = scan(ConsistentRead=True, **request)
        return answer

    return _positions(context, "scan-positions", read)


def _positions(context: Context, name: str, read: Read) -> Outcome:
    table, dynamodb = context.scratch.table(name), context.client("dynamodb")
    for number in range(_ITEMS):
        dynamodb.put_item(TableName=table, Item=key("a", str(number)))
    first = read(TableName=table, Limit=2)
    position = first["LastEvaluatedKey"]
    dynamodb.delete_item(TableName=table, Key=position)
    rest = read(TableName=table, ExclusiveStartKey=position)
    return compare(
        {"first page": ["0", "1"], "page after the deleted item": ["2", "3", "4"]},
        {"first page": _sort_keys(first), "page after the deleted item": _sort_keys(rest)},
    )


def _sort_keys(answer: Mapping[str, Any]) -> list[str]:
    return [item["SK"]["S"] for item in answer["Items"]]


CHECKS: Final = (
    Check(
        "query-bounds",
        "a Query reads about 1 MB at most and is billed by 4 KB of what it reads, before its filter",
        bounds,
        dollars=dollars_of(write_units=_LARGE_ITEMS * 60 + _SMALL_ITEMS, read_units=300),
        local=True,
    ),
    Check("query-positions", "a Query continues after an item that no longer exists", query_positions, local=True),
    Check("scan-positions", "a Scan continues after an item that no longer exists", scan_positions),
)
