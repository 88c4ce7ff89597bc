"""What all clients of the benchmark agree on: the table, its keys, and a stored user as it is on the wire.

This module imports nothing, so that the cold start of a client is its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TABLE: Final = "bench-table"
TOPOLOGY: Final = "bench-topology"
REGION: Final = "eu-west-1"
KEYS: Final = ("local", "local")
TENANT: Final = "acme"
SHARDS: Final = 16
PAGE: Final = 100
"""Items of a page, of a BatchGetItem, and of each shard of a fan-out."""
BATCH: Final = 25
FIELDS: Final = ("id", "email", "logins")
UNMOVED: Final = "attribute_not_exists(MovedTo)"
"""The condition of every put, because the layer needs it."""
INDEX: Final = "GSI2"
INDEX_SHARDS: Final = 4
KSUID: Final = "2Xk"
"""The beginning of all ids."""
ATTACHED: Final = f"{KSUID}with0an0attachment0here00"
"""The id of the user that has an attachment."""
CHANGED: Final = {"display_name": "Ada of the Acme Company", "updated_at": "2026-11-21T12:00:00.000000Z", "Rev": "VQn2"}
"""What an update sets."""


def partition_of(shard: int) -> str:
    """Return the stored partition key of a shard."""
    return f"user.v1.User:{TENANT}:{shard}"


def entries_of(shard: int) -> str:
    """Return the stored partition key of a shard of the index by department, which is `INDEX`."""
    return f"user.v1.User:{TENANT}:engineering:{shard}"


def user_item(shard: int, number: int) -> dict[str, Any]:
    """Return a stored `dynashard_lab.bench.users.User` as it is on the wire."""
    name, identity, manager = f"user{number:06d}", f"{KSUID}{number:024d}", f"{KSUID}{number // 10:024d}"
    stamp = {"S": "2026-11-20T12:00:00.000000Z"}
    return {
        "PK": {"S": partition_of(shard)},
        "SK": {"S": identity},
        "Type": {"S": "user.v1.User"},
        "Rev": {"S": "VQn-ABGMUDd7o1wr"},
        "tenant_id": {"S": TENANT},
        "id": {"S": identity},
        "email": {"S": f"{name}@example.com"},
        "display_name": {"S": f"User Number {number} of the Acme Company"},
        "manager_id": {"S": manager},
        "department": {"S": "engineering"},
        "status": {"S": "active"},
        "title": {"S": "Senior Engineer of Distributed Systems"},
        "phone": {"S": f"+41 44 {number:07d}"},
        "logins": {"N": str(number * 7)},
        "created_at": stamp,
        "updated_at": stamp,
        "ExpiresAt": {"N": "4098859200"},
        "GSI1PK": {"S": f"user.v1.User:{TENANT}"},
        "GSI1SK": {"S": f"{name}@example.com"},
        "GSI2PK": {"S": entries_of(shard % INDEX_SHARDS)},
        "GSI2SK": {"S": identity},
        "GSI3PK": {"S": f"user.v1.User:{TENANT}:{manager}:2"},
        "GSI3SK": {"S": identity},
    }


def attached_item() -> dict[str, Any]:
    """Return a stored `dynashard_lab.bench.attached.AttachedUser` as it is on the wire: a pointer, and a user."""
    pointer = {"V": {"S": "0pWmxFvUQ2Yk"}, "N": {"N": "3"}, "B": {"N": "812345"}, "X": {"S": "9d" * 16}}
    item = user_item(0, 1)
    return {**item, "SK": {"S": ATTACHED}, "id": {"S": ATTACHED}, "details": {"M": pointer}}


def key_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored key of an item, on the wire or of Python values."""
    return {name: item[name] for name in ("PK", "SK")}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of the wire with Python values."""
    return {name: int(value["N"]) if "N" in value else value["S"] for name, value in item.items()}


def batch(count: int) -> Sequence[dict[str, Any]]:
    """Return so many users on the wire, as a batch writes or reads them."""
    return [user_item(number % SHARDS, number) for number in range(count)]


def query_of(shard: int) -> dict[str, Any]:
    """Return the Query of a shard's items."""
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :pk",
        "ExpressionAttributeValues": {":pk": {"S": partition_of(shard)}},
        "ReturnConsumedCapacity": "TOTAL",
    }


GET: Final[dict[str, Any]] = {"TableName": TABLE, "Key": key_of(user_item(0, 1)), "ReturnConsumedCapacity": "TOTAL"}
PUT: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "Item": user_item(0, 1),
    "ConditionExpression": UNMOVED,
    "ReturnValues": "ALL_OLD",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    "ReturnConsumedCapacity": "TOTAL",
}
ATTACHED_GET: Final[dict[str, Any]] = {**GET, "Key": key_of(attached_item())}
UPDATE: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "Key": GET["Key"],
    "UpdateExpression": "SET " + ", ".join(f"{name} = :{name}" for name in CHANGED),
    "ConditionExpression": f"attribute_exists(PK) AND {UNMOVED}",
    "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in CHANGED.items()},
    "ReturnValues": "ALL_NEW",
    "ReturnConsumedCapacity": "TOTAL",
}
PAGE_QUERY: Final[dict[str, Any]] = {**query_of(0), "Limit": PAGE}
INDEX_QUERY: Final[dict[str, Any]] = {
    **PAGE_QUERY,
    "IndexName": INDEX,
    "KeyConditionExpression": f"{INDEX}PK = :pk",
    "ExpressionAttributeValues": {":pk": {"S": entries_of(0)}},
}
FIELDS_QUERY: Final[dict[str, Any]] = {**PAGE_QUERY, "ProjectionExpression": ", ".join(FIELDS)}


def batch_write() -> dict[str, Any]:
    """Return a BatchWriteItem of 25 users."""
    puts = [{"PutRequest": {"Item": item}} for item in batch(BATCH)]
    return {"RequestItems": {TABLE: puts}, "ReturnConsumedCapacity": "TOTAL"}


def batch_get() -> dict[str, Any]:
    """Return a BatchGetItem of 100 users."""
    keys = [key_of(item) for item in batch(PAGE)]
    return {"RequestItems": {TABLE: {"Keys": keys}}, "ReturnConsumedCapacity": "TOTAL"}
