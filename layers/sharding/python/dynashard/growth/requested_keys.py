"""Which stored partition keys the requests of the layer name, and the parts of a batch that were not executed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynashard.schema import INDEX_SLOTS, PK, index_pk
from dynashard.transport.interface import METERED

_KEYS: Final = ((None, PK), *((slot, index_pk(slot)) for slot in INDEX_SLOTS))
"""The names of the partition keys of the table and of each index."""

SlotKey = tuple[str | None, str]
"""The slot of an index, None for the table, and a stored partition key there."""


def stored_keys(
    operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], table: str, actions: Sequence[int] = ()
) -> list[SlotKey]:
    """Return the stored partition keys of each part of a request; only of these actions of a transaction, if any.

    A request of an unexpected shape gives none: counting must not fail a request that was executed.
    """
    if operation not in METERED:
        return []
    if operation in ("BatchWriteItem", "BatchGetItem"):
        return _batch(request, "RequestItems", table)
    if operation in ("TransactWriteItems", "TransactGetItems"):
        chosen = [step for at, step in enumerate(request.get("TransactItems", ())) if not actions or at in actions]
        parts = [part for step in chosen for part in step.values()]
        return [key for part in parts if part.get("TableName") == table for key in _item(part)]
    if request.get("TableName") != table:
        return []
    if operation == "Query":
        partition = request.get("ExpressionAttributeValues", {}).get(":partition")
        return [(request.get("IndexName"), partition["S"])] if partition else []
    keys = _item(request)
    if "Key" in request:
        # A write by key names no index entries; its answer may have the item that it changed or removed.
        keys += [(slot, key) for slot, key in _item({"Item": answer.get("Attributes", {})}) if slot is not None]
    return keys


def created_keys(operation: str, request: Mapping[str, Any], table: str) -> list[str]:
    """Return the stored partition keys at which a request may have created items: puts that require no stored item."""
    if operation == "PutItem":
        puts = [request]
    elif operation == "TransactWriteItems":
        puts = [step["Put"] for step in request.get("TransactItems", ()) if "Put" in step]
    elif operation == "BatchWriteItem":
        written = request.get("RequestItems", {}).get(table, ())
        puts = [{"TableName": table, **each["PutRequest"]} for each in written if "PutRequest" in each]
    else:
        return []
    return [
        put["Item"][PK]["S"]
        for put in puts
        if put.get("TableName") == table
        and PK in put.get("Item", ())
        and f"attribute_exists({PK})" not in put.get("ConditionExpression", "")
    ]


def unexecuted_keys(answer: Mapping[str, Any], table: str) -> list[SlotKey]:
    """Return the stored partition keys of the parts of a batch that were not executed."""
    return _batch(answer, "UnprocessedItems", table) + _batch(answer, "UnprocessedKeys", table)


def _batch(part: Mapping[str, Any], name: str, table: str) -> list[SlotKey]:
    found = part.get(name, {}).get(table, ())
    if isinstance(found, Mapping):
        return [key for each in found.get("Keys", ()) for key in _item({"Key": each})]
    return [key for each in found for action in each.values() for key in _item(action)]


def _item(part: Mapping[str, Any]) -> list[SlotKey]:
    """Return the keys of the table and of indexes that a request for one item names."""
    named = part.get("Key") or part.get("Item") or {}
    return [(slot, named[name]["S"]) for slot, name in _KEYS if name in named]
