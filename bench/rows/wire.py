"""The transport alone compared with botocore's client: wire dictionaries on the local engine."""

from collections.abc import Iterator
from typing import Any, Final

from botocore import xform_name

from bench.canned import PAGE, user_item
from bench.measure import Contender, Row
from bench.world import TABLE, World
from dynashard.transport.interface import Wire

RAW: Final = "botocore, typed dictionaries"
OURS: Final = "transport"
BATCH: Final = 25

GET: Final = {"TableName": TABLE, "Key": {name: user_item(0, 1)[name] for name in ("PK", "SK")}}
PUT: Final = {"TableName": TABLE, "Item": user_item(0, 1)}
QUERY: Final = {
    "TableName": TABLE,
    "KeyConditionExpression": "PK = :pk",
    "ExpressionAttributeValues": {":pk": {"S": user_item(1, 0)["PK"]["S"]}},
    "Limit": PAGE,
}
BATCH_WRITE: Final = {
    "RequestItems": {TABLE: [{"PutRequest": {"Item": user_item(2, number)}} for number in range(BATCH)]}
}


def rows(world: World) -> Iterator[Row]:
    """Yield GetItem, PutItem, a Query of 100 items and a BatchWriteItem of 25."""
    raw, transport = world.raw(), world.transport()
    for number in range(PAGE):
        transport.call("PutItem", {"TableName": TABLE, "Item": user_item(1, number)})
    transport.call("PutItem", PUT)

    def row(name: str, operation: str, request: Wire, repeat: int, limit: float) -> Row:
        method: Any = getattr(raw, xform_name(operation))
        return Row(
            name,
            [
                Contender(RAW, lambda: method(**request)),
                Contender(OURS, lambda: transport.call(operation, dict(request))),
            ],
            repeat=repeat,
            limits={OURS: limit},
        )

    yield row("GetItem", "GetItem", GET, 100, 0.75)
    yield row("PutItem", "PutItem", PUT, 100, 0.75)
    yield row(f"Query of {PAGE}", "Query", QUERY, 15, 0.45)
    yield row(f"BatchWriteItem of {BATCH}", "BatchWriteItem", BATCH_WRITE, 15, 0.75)
    transport.close()
    raw.close()
