"""Scripted answers of DynamoDB, for a transport over real sockets."""

from collections.abc import Callable
from pathlib import Path

import orjson

from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.sdk import SdkTransport
from dynashard_lab.bench.canned import Reply

RESPONSES = Path(__file__).parent / "responses"
GET = {"TableName": "users", "Key": {"PK": {"S": "a"}}}
FOUND = Reply(
    orjson.dumps(
        {
            "Item": {"PK": {"S": "a"}, "photo": {"B": "AAEC"}, "Error": {"S": "an attribute"}},
            "ConsumedCapacity": {"TableName": "users", "CapacityUnits": 0.5},
        }
    )
)
HTTP_OK_BUT_CUT = Reply(b'{"Item": {"PK": {"S": ')

Opened = Callable[..., SdkTransport | DirectTransport]
"""Opens a transport with `Settings` and `Attempts`."""
Script = Callable[..., SdkTransport | DirectTransport]
"""Starts a server with scripted answers, and returns a transport to it."""


def stored(name: str) -> Reply:
    """Return a stored answer of DynamoDB."""
    answer = orjson.loads((RESPONSES / f"{name}.json").read_bytes())
    return Reply(orjson.dumps(answer["body"]), status=answer["status"], headers=answer["headers"])
