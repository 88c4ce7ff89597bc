"""Read and rewrite requests to the engine, and make its refusals."""

import re
from collections.abc import Mapping
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.schema import PK, SK, TOPOLOGY_KEY
from dynashard.transport.classification import Refusal, classify
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY

KEYS: Final = {TABLE: (PK, SK), TOPOLOGY: (TOPOLOGY_KEY,)}
_PLACEHOLDERS: Final = re.compile(r"[:#][A-Za-z0-9_]+")

StoredKey = tuple[str, ...]
"""A table, and the values of a key in it."""


def key_of(body: Mapping[str, Any]) -> StoredKey:
    """Return the key of a single-item request, or of an action of a transaction."""
    table = body["TableName"]
    holder = body.get("Key") or body["Item"]
    return table, *(holder[name]["S"] for name in KEYS[table])


def batch_key_of(table: str, action: Wire) -> StoredKey:
    """Return the key of an action of a BatchWriteItem."""
    holder = action["PutRequest"]["Item"] if "PutRequest" in action else action["DeleteRequest"]["Key"]
    return table, *(holder[name]["S"] for name in KEYS[table])


def check_of(body: Wire) -> Wire:
    """Return a ConditionCheck with the condition of an action that is applied later."""
    text = body["ConditionExpression"]
    check = {name: body[name] for name in ("TableName", "ConditionExpression")}
    check["Key"] = body.get("Key") or {name: body["Item"][name] for name in KEYS[body["TableName"]]}
    if "ReturnValuesOnConditionCheckFailure" in body:
        check["ReturnValuesOnConditionCheckFailure"] = body["ReturnValuesOnConditionCheckFailure"]
    return _with_placeholders(check, body, text)


def unconditional(body: Wire) -> Wire:
    """Return an action without its condition, which was checked before."""
    dropped = {
        "ConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ReturnValuesOnConditionCheckFailure",
    }
    plain = {name: value for name, value in body.items() if name not in dropped}
    return _with_placeholders(plain, body, body.get("UpdateExpression", ""))


def _with_placeholders(request: Wire, body: Wire, text: str) -> Wire:
    """Add the names and values that an expression uses, because DynamoDB refuses unused ones."""
    words = set(_PLACEHOLDERS.findall(text))
    for name in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        used = {word: meaning for word, meaning in body.get(name, {}).items() if word in words}
        if used:
            request[name] = used
    return request


def refused(operation: str, code: str, **body: Any) -> DynashardError:
    """Return the error for a refusal by DynamoDB, by the layer's own classification."""
    return classify(Refusal(operation=operation, status=400, code=code, message="", body=body, attempts=1))


def summary(wire: Mapping[str, Any]) -> str:
    """Return a short text of a request or an answer, for the trace."""
    text = repr({name: value for name, value in wire.items() if name not in ("ConsumedCapacity", "TableName")})
    text = re.sub(r"\{'(?:S|N|BOOL)': ('[^']*'|True|False)\}", r"\1", text)
    text = text.replace("'ReturnConsumedCapacity': 'TOTAL'", "")
    return text if len(text) < 1500 else f"{text[:1500]}..."
