"""A stub of DynamoDB that answers from memory after a constant delay.

The local engine works on one query at a time, so it cannot show what parallel requests gain. This server answers every
request after the same delay, however many there are. Tests also use it to play scripted failures.

    python -m dynashard_lab.bench.canned --delay 5        # prints its URL; answers until standard input ends
"""

import argparse
import asyncio
import ssl
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import orjson

from dynashard_lab.bench.stored import (
    ATTACHED,
    KSUID,
    PAGE,
    SHARDS,
    TABLE,
    TOPOLOGY,
    attached_item,
    key_of,
    user_item,
)

MOST: Final = 1000
"""How many items a Query without a limit returns at most: about the 1 MB at which DynamoDB stops."""


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


class CannedAnswers:
    """Answers reads and writes with bytes made once, so that the server costs little CPU.

    A Query returns the items of the shard at the end of its partition key, in the order of their keys. Puts of users
    are not stored; records of shard counts are.

    Args:
        per_shard: items of each shard.
        shards: how many shards the items are spread over.
        padding: bytes that each item is larger than a plain user.
    """

    def __init__(self, per_shard: int = PAGE, *, shards: int = SHARDS, padding: int = 0) -> None:
        self._per_shard, self._shards, self._padding = per_shard, shards, padding
        one = self._item(0, 1)
        self._single, self._attached = (
            Reply(orjson.dumps({"Item": item, "ConsumedCapacity": _capacity(0.5)})) for item in (one, attached_item())
        )
        self._replaced = Reply(orjson.dumps({"Attributes": one, "ConsumedCapacity": _capacity(1.0)}))
        self._written = Reply(orjson.dumps({"ConsumedCapacity": _capacity(1.0)}))
        self._batch_written = Reply(orjson.dumps({"UnprocessedItems": {}, "ConsumedCapacity": [_capacity(25.0)]}))
        self._pages: dict[tuple[Any, ...], Reply] = {}
        self._batches: dict[bytes, Reply] = {}
        self._counts: dict[str, dict[str, Any]] = {}

    def __call__(self, asked: Asked) -> Reply:
        """Answer one request."""
        if asked.operation == "GetItem":
            return self._attached if ATTACHED.encode() in asked.body else self._single
        if asked.operation in ("PutItem", "UpdateItem"):
            return self._put(asked.body)
        if asked.operation == "Query":
            return self._query(orjson.loads(asked.body))
        if asked.operation == "BatchGetItem":
            return self._batch_get(asked.body)
        return self._batch_written if asked.operation == "BatchWriteItem" else self._written

    def _put(self, body: bytes) -> Reply:
        if TOPOLOGY.encode() in body:
            item = orjson.loads(body)["Item"]
            self._counts.setdefault(item["partition"]["S"], item)
            return self._written
        return self._replaced if b'"ALL_OLD"' in body or b'"ALL_NEW"' in body else self._written

    def _batch_get(self, body: bytes) -> Reply:
        if TOPOLOGY.encode() in body:
            keys = orjson.loads(body)["RequestItems"][TOPOLOGY]["Keys"]
            return self._found(
                TOPOLOGY, [self._counts[name] for key in keys if (name := key["partition"]["S"]) in self._counts]
            )
        if body not in self._batches:
            asked = orjson.loads(body)["RequestItems"][TABLE]
            items = [{**self._item(0, _number_of(key)), **key} for key in asked["Keys"]]
            self._batches[body] = self._found(TABLE, _only(items, _projected(asked)))
        return self._batches[body]

    def _found(self, table: str, items: Sequence[Mapping[str, Any]]) -> Reply:
        capacity = [_capacity(len(items) / 2)]
        return Reply(orjson.dumps({"Responses": {table: items}, "UnprocessedKeys": {}, "ConsumedCapacity": capacity}))

    def _query(self, query: Mapping[str, Any]) -> Reply:
        shard = _shard_of(query)
        after = query.get("ExclusiveStartKey")
        start = _number_of(after) // self._shards + 1 if after else 0
        count = max(0, min(query.get("Limit", MOST), MOST, self._per_shard - start))
        wanted = (shard, start, count, query.get("IndexName"), _projected(query))
        if wanted not in self._pages:
            self._pages[wanted] = self._page(*wanted)
        return self._pages[wanted]

    def _page(self, shard: int, start: int, count: int, slot: str | None, fields: frozenset[str]) -> Reply:
        # Numbers interleave over the shards, so that a merge by sort key has to compare.
        items = [self._item(shard, number * self._shards + shard) for number in range(start, start + count)]
        page = {"Items": items, "Count": count, "ScannedCount": count, "ConsumedCapacity": _capacity(8.0)}
        if items and start + count < self._per_shard:
            last = items[-1]
            entry = {name: last[name] for name in (f"{slot}PK", f"{slot}SK") if slot}
            page["LastEvaluatedKey"] = {**key_of(last), **entry}
        page["Items"] = _only(items, fields)
        return Reply(orjson.dumps(page))

    def _item(self, shard: int, number: int) -> dict[str, Any]:
        item = user_item(shard, number)
        return {**item, "title": {"S": item["title"]["S"] + "x" * self._padding}} if self._padding else item


def _capacity(units: float) -> dict[str, Any]:
    return {"TableName": TABLE, "CapacityUnits": units}


def _number_of(key: Mapping[str, Any]) -> int:
    return int(key["SK"]["S"].removeprefix(KSUID))


def _shard_of(query: Mapping[str, Any]) -> int:
    """Return the number at the end of the value that looks like a stored partition key."""
    for value in query["ExpressionAttributeValues"].values():
        shard = value.get("S", "").rpartition(":")[2]
        if shard.isdecimal():
            return int(shard)
    return 0


def _only(items: list[dict[str, Any]], fields: frozenset[str]) -> list[dict[str, Any]]:
    """Return these attributes of items, or all if none are named."""
    return [{name: value for name, value in item.items() if name in fields} for item in items] if fields else items


def _projected(read: Mapping[str, Any]) -> frozenset[str]:
    """Return the attributes that a read wants; none for all."""
    names = read.get("ExpressionAttributeNames", {})
    wanted = read.get("ProjectionExpression", "")
    return frozenset(names.get(name, name) for name in wanted.replace(" ", "").split(",")) if wanted else frozenset()


def main() -> None:
    """Serve until standard input ends, which it does when the process that started this one ends."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_lab.bench.canned", description=__doc__)
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds before every answer (default 5)")
    parser.add_argument("--items", type=int, default=PAGE, help=f"items of each shard (default {PAGE})")
    parser.add_argument("--shards", type=int, default=SHARDS, help=f"shards (default {SHARDS})")
    parser.add_argument("--padding", type=int, default=0, help="bytes that each item is larger (default 0)")
    asked = parser.parse_args()
    answers = CannedAnswers(asked.items, shards=asked.shards, padding=asked.padding)
    with canned_server(answers, delay=asked.delay / 1000) as url:
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
