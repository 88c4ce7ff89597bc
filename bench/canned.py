"""A stub of DynamoDB that answers from memory after a constant delay.

The local engine works on one query at a time, so it cannot show what parallel requests gain. This server answers every
request after the same delay, however many there are. Tests also use it to play scripted failures.

    python -m bench.canned --delay 5        # prints its URL; answers until standard input ends
"""

import argparse
import asyncio
import ssl
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import orjson

PAGE: Final = 100
MOST: Final = 1000
"""How many items a Query without a limit returns at most: about the 1 MB at which DynamoDB stops."""
SHARDS: Final = 16
_KSUID: Final = "2Xk"
"""The beginning of all ids."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived: DynamoDB's operation, headers with names in lower case, and the bytes of the body."""

    operation: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """An answer.

    Attributes:
        body: its content.
        status: the HTTP status.
        headers: further headers.
        hang_up: whether the connection is closed instead.
        silent: whether nothing is sent, and the connection stays open.
        checksum: sent in place of the body's own CRC-32.
    """

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_up: bool = False
    silent: bool = False
    checksum: int | None = None

    @cached_property
    def wire(self) -> bytes:
        """The bytes of the answer, made once."""
        checksum = zlib.crc32(self.body) if self.checksum is None else self.checksum
        lines = [
            f"HTTP/1.1 {self.status} Canned",
            "Server: Server",
            "Content-Type: application/x-amz-json-1.0",
            f"Content-Length: {len(self.body)}",
            "Connection: keep-alive",
            "x-amzn-RequestId: VVS6PDSBL7C2MVJFMPHTOMUVDBVV4KQNSO5AEMVJF66Q9ASUAAJG",
            f"x-amz-crc32: {checksum}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body


Answer = Callable[[Asked], Reply]


class _Connection(asyncio.Protocol):
    """Parses the requests of a connection and answers each after the delay."""

    def __init__(self, answer: Answer, delay: float, connected: list[asyncio.Transport]) -> None:
        self._answer = answer
        self._connected = connected
        self._delay = delay
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows asyncio's declared type
        self._transport = transport
        self._connected.append(transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (asked := self._next()) is not None:
            reply = self._answer(asked)
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._send, reply)
            else:
                self._send(reply)

    def _next(self) -> Asked | None:
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        if not separator:
            return None
        lines = head.decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return None
        self._received = rest[length:]
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        return Asked(operation, headers, rest[:length])

    def _send(self, reply: Reply) -> None:
        if reply.hang_up:
            self._transport.abort()
        elif not reply.silent:
            self._transport.write(reply.wire)


@dataclass(frozen=True, slots=True)
class _Server:
    """Listens on a free port from the start of `run` until `stop` is set in its loop."""

    answer: Answer
    delay: float
    tls: ssl.SSLContext | None
    url: SimpleQueue[str] = field(default_factory=SimpleQueue)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Serve, after putting the URL into `url`."""
        connected: list[asyncio.Transport] = []
        server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self.answer, self.delay, connected), "127.0.0.1", 0, ssl=self.tls
        )
        port = server.sockets[0].getsockname()[1]
        self.url.put(f"https://localhost:{port}" if self.tls else f"http://127.0.0.1:{port}")
        await self.stop.wait()
        server.close()
        for transport in connected:
            transport.abort()


@contextmanager
def canned_server(answer: Answer, *, delay: float = 0.0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve from a thread of this process until the block ends, and yield the URL.

    Args:
        answer: called for each request, in order of arrival, in the server's thread.
        delay: seconds before every answer.
        tls: makes the server speak HTTPS, as `localhost`; None for HTTP.
    """
    loop = asyncio.new_event_loop()
    server = _Server(answer, delay, tls)
    thread = Thread(target=lambda: loop.run_until_complete(server.run()), name="canned", daemon=True)
    thread.start()
    try:
        yield server.url.get()
    finally:
        loop.call_soon_threadsafe(server.stop.set)
        thread.join()
        loop.close()


def user_item(shard: int, number: int) -> dict[str, Any]:
    """Return a stored `bench.users.User` as it is on the wire."""
    name, identity, manager = f"user{number:06d}", f"{_KSUID}{number:024d}", f"{_KSUID}{number // 10:024d}"
    stamp = {"S": "2026-11-20T12:00:00.000000Z"}
    return {
        "PK": {"S": f"user.v1.User:acme:{shard}"},
        "SK": {"S": identity},
        "Type": {"S": "user.v1.User"},
        "Rev": {"S": "VQn-ABGMUDd7o1wr"},
        "tenant_id": {"S": "acme"},
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
        "GSI1PK": {"S": "user.v1.User:acme"},
        "GSI1SK": {"S": f"{name}@example.com"},
        "GSI2PK": {"S": "user.v1.User:acme:engineering:2"},
        "GSI2SK": {"S": identity},
        "GSI3PK": {"S": f"user.v1.User:acme:{manager}:2"},
        "GSI3SK": {"S": identity},
    }


class CannedAnswers:
    """Answers GetItem, PutItem and Query with bytes made once, so that the server costs little CPU.

    A Query returns the `per_shard` items of the shard at the end of its partition key, in the order of their keys.
    """

    def __init__(self, per_shard: int = PAGE) -> None:
        self._per_shard = per_shard
        self._single = Reply(orjson.dumps({"Item": user_item(0, 1), "ConsumedCapacity": _capacity(0.5)}))
        self._written = Reply(orjson.dumps({"ConsumedCapacity": _capacity(1.0)}))
        self._pages: dict[tuple[int, int, int], Reply] = {}

    def __call__(self, asked: Asked) -> Reply:
        """Answer one request."""
        if asked.operation == "GetItem":
            return self._single
        return self._query(orjson.loads(asked.body)) if asked.operation == "Query" else self._written

    def _query(self, query: Mapping[str, Any]) -> Reply:
        shard = _shard_of(query)
        after = query.get("ExclusiveStartKey")
        start = int(after["SK"]["S"].removeprefix(_KSUID)) // SHARDS + 1 if after else 0
        count = min(query.get("Limit", MOST), MOST, self._per_shard - start)
        wanted = (shard, start, count)
        if wanted not in self._pages:
            self._pages[wanted] = self._page(*wanted)
        return self._pages[wanted]

    def _page(self, shard: int, start: int, count: int) -> Reply:
        # Numbers interleave over the shards, so that a merge by sort key has to compare.
        items = [user_item(shard, number * SHARDS + shard) for number in range(start, start + count)]
        page = {"Items": items, "Count": count, "ScannedCount": count, "ConsumedCapacity": _capacity(8.0)}
        if start + count < self._per_shard:
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in ("PK", "SK")}
        return Reply(orjson.dumps(page))


def _capacity(units: float) -> dict[str, Any]:
    return {"TableName": "bench-table", "CapacityUnits": units}


def _shard_of(query: Mapping[str, Any]) -> int:
    """Return the number at the end of the value that looks like a stored partition key."""
    for value in query["ExpressionAttributeValues"].values():
        shard = value.get("S", "").rpartition(":")[2]
        if shard.isdecimal():
            return int(shard)
    return 0


def main() -> None:
    """Serve until standard input ends, which it does when the process that started this one ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.canned", description=__doc__)
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds before every answer (default 5)")
    parser.add_argument("--items", type=int, default=PAGE, help=f"items of each shard (default {PAGE})")
    asked = parser.parse_args()
    with canned_server(CannedAnswers(asked.items), delay=asked.delay / 1000) as url:
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
