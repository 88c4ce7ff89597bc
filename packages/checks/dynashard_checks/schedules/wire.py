"""A fast connection to the local engine: one kept-alive socket, without signatures and retries."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson

from dynashard.tables import ITEMS
from dynashard.tables import TOPOLOGY as TOPOLOGY_SCHEMA
from dynashard.testing import engine
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.classification import Refusal, classify
from dynashard.transport.interface import METERED, Resend, Wire

TABLE: Final = "schedules-items"
TOPOLOGY: Final = "schedules-topology"
HTTP_OK: Final = 200
_NAMESPACE: Final = "DynamoDB_20120810"


class EngineSocket:
    """A kept-alive connection to an engine, by default on this machine, for one thread."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, operation: str, request: Mapping[str, Any]) -> tuple[int, Wire]:
        """Send a request once, and return the status and the body of its answer."""
        body = orjson.dumps(request)
        self._socket.sendall(
            b"POST / HTTP/1.1\r\nhost: localhost\r\nx-amz-target: %s.%s\r\n"
            b"content-type: application/x-amz-json-1.0\r\n"
            b"authorization: AWS4-HMAC-SHA256 Credential=local/20300101/us-east-1/dynamodb/aws4_request,"
            b" SignedHeaders=host, Signature=0\r\nx-amz-date: 20300101T000000Z\r\ncontent-length: %d\r\n\r\n%s"
            % (_NAMESPACE.encode(), operation.encode(), len(body), body)
        )
        return self._receive()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> tuple[int, Wire]:
        received = self._socket.recv(65536)
        while (end := received.find(b"\r\n\r\n")) < 0:
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the engine has closed the connection")
            received += more
        head = received[:end].lower()
        at = head.index(b"content-length:") + len(b"content-length:")
        length = int(head[at:].split(b"\r\n", 1)[0])
        parts = [received[end + 4 :]]
        missing = length - len(parts[0])
        while missing > 0:
            parts.append(self._socket.recv(min(missing, 1 << 20)))
            missing -= len(parts[-1])
        answer: Wire = orjson.loads(b"".join(parts)) if length else {}
        return int(head[9:12]), answer


def error_of(status: int, answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the code and the message of a refusal."""
    code = str(answer.get("__type", status)).rsplit("#", 1)[-1]
    return code, str(answer.get("message") or answer.get("Message") or "")


class LeanWire(OneByOne):
    """Sends one request at a time to an engine on this machine.

    Errors are made by the layer's own classification, after a single attempt.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket = EngineSocket(port)
        self.calls = 0

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`. It is never sent again, so `resend` has no effect."""
        del resend
        if operation in METERED and "ReturnConsumedCapacity" not in request:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        self.calls += 1
        status, answer = self._socket.exchange(operation, request)
        if status == HTTP_OK:
            return answer
        code, message = error_of(status, answer)
        raise classify(Refusal(operation=operation, status=status, code=code, message=message, body=answer))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def port_of_engine_in_memory() -> AbstractContextManager[int]:
    """Start an engine with its data in memory, and yield its port. A write takes half the time of one to a file."""
    return engine.engine_in_memory(engine.engine_program(os.environ, Path(__file__).parent))


@contextmanager
def engine_in_memory() -> Iterator[LeanWire]:
    """Start an engine in memory, create the item table and the topology table, and yield a connection."""
    with ExitStack() as stack:
        wire = LeanWire(stack.enter_context(port_of_engine_in_memory()))
        stack.callback(wire.close)
        create_tables(wire)
        yield wire


def create_tables(wire: LeanWire, table: str = TABLE, topology: str = TOPOLOGY) -> None:
    """Create the tables in the stored format; see `dynashard.schema`."""
    wire.call("CreateTable", ITEMS.request(table, stream=False))
    wire.call("CreateTable", TOPOLOGY_SCHEMA.request(topology, stream=False))


def scanned(wire: LeanWire, table: str) -> Iterator[Wire]:
    """Yield all items of a table, page by page."""
    request: Wire = {"TableName": table, "ConsistentRead": True}
    while True:
        answer = wire.call("Scan", request)
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def wiped(wire: LeanWire, table: str, key_names: tuple[str, ...]) -> int:
    """Delete all items of a table, and return how many there were."""
    gone = count()
    request: Wire = {"TableName": table}
    while items := wire.call("Scan", request)["Items"]:
        for item in items:
            wire.call("DeleteItem", {"TableName": table, "Key": {name: item[name] for name in key_names}})
            next(gone)
    return next(gone)
