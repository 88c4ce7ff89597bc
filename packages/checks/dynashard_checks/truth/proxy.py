"""A proxy in front of the engine that loses answers, executes requests late, and fails as networks do.

    python -m dynashard_checks.truth.proxy PORT --seed 1     # prints its own port; ends with its standard input

It runs as a process of its own. It injects no faults until a request to `/faults` sets their rates. It answers a
request to `/log` with the ambiguous attempts so far: writes that may have been executed without a usable answer.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Final
from zlib import crc32

AMBIGUOUS: Final = ("lost", "answer_lost", "late", "error_before", "error_after", "reset", "damaged", "cut")
"""Faults after which the request may have been executed, or may be executed later."""
# Reads are never late, so late requests are drawn more often: a short run has some too.
_LOST: Final = (("lost", 2.0), ("answer_lost", 3.0), ("late", 6.0))
"""The faults in the share `lost`, with their weights."""
_OTHER: Final = (
    ("throttled", 5.0), ("error_before", 1.5), ("error_after", 1.5), ("reset", 2.0), ("damaged", 1.5), ("cut", 1.5),
    ("closed_idle", 3.0), ("slow", 1.0), ("partly", 4.0),
)  # fmt: skip
"""The faults in the share `other`, with their weights. Only a batch of writes is done partly."""
_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"})
_READS: Final = frozenset({"GetItem", "BatchGetItem", "TransactGetItems", "Query"})
_NAMES: Final = re.compile(rb"\b[wk]\d+-\d+(?:-\d+)?\b")
"""The versions and keys of the clients: `w0-17`, `k3-2-0`."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TARGET: Final = re.compile(rb"\r\nx-amz-target: *DynamoDB_20120810\.(\w+)", re.IGNORECASE)
_THROTTLE: Final = json.dumps(
    {
        "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "message": "Throughput exceeds the current capacity of your table or index.",
    }
).encode()
_ERROR: Final = json.dumps({"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": ""}).encode()


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a request meets a fault.

    Attributes:
        lost: the share of requests whose answer is lost, before or after execution, or that are executed late.
        other: the share that meets another fault.
        hold: the longest time in seconds until the connection of a lost answer is closed.
        late: the longest time in seconds until a late request is executed.
    """

    lost: float = 0.0
    other: float = 0.0
    hold: float = 0.3
    late: float = 3.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """An ambiguous attempt of a write: its time, its fault, and the keys and versions in its body."""

    at: float
    operation: str
    fault: str
    names: tuple[str, ...]


@dataclass
class Proxy:
    """The proxy. For each accepted connection it opens one to the engine, and sends one request after the other."""

    engine: int
    random: Random
    rates: Rates = field(default_factory=Rates)
    attempts: list[Attempt] = field(default_factory=list)
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    _late: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        engine = _Engine(self.engine)
        try:
            while await self._one(reader, writer, engine):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            engine.close()
            with suppress(ConnectionError):
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, engine: "_Engine") -> bool:
        """Serve one request; False ends the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if head.startswith((b"POST /faults ", b"GET /log ")):
            writer.write(_http(200, self._controlled(head, body)))
            return True
        target = _TARGET.search(head)
        operation = target[1].decode() if target else ""
        fault = self._drawn(operation)
        if fault:
            self._note(operation, fault, body)
        return await self._answered(fault, head + body, reader, writer, engine)

    def _controlled(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"POST"):
            self.rates = Rates(**json.loads(body))
            return b"{}"
        log = {"requests": self.requests, "faults": self.faults, "attempts": [asdict(each) for each in self.attempts]}
        return json.dumps(log).encode()

    def _drawn(self, operation: str) -> str:
        """Draw the fault of a request; empty for none."""
        rates = self.rates
        if not (rates.lost or rates.other) or operation not in _WRITES | _READS:
            return ""
        self.requests += 1
        drawn = self.random.random()
        if drawn >= rates.lost + rates.other:
            return ""
        kinds = _LOST if drawn < rates.lost else _OTHER
        [fault] = self.random.choices([name for name, _ in kinds], [weight for _, weight in kinds])
        if fault == "late" and operation in _READS:
            fault = "lost"
        if fault == "partly" and operation != "BatchWriteItem":
            fault = "throttled"
        self.faults[fault] += 1
        return fault

    def _note(self, operation: str, fault: str, body: bytes) -> None:
        if fault in AMBIGUOUS and operation in _WRITES:
            names = tuple(dict.fromkeys(name.decode() for name in _NAMES.findall(body)))
            self.attempts.append(Attempt(time.monotonic(), operation, fault, names))

    async def _answered(  # noqa: C901, PLR0911 - one branch for each fault
        self,
        fault: str,
        request: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        engine: "_Engine",
    ) -> bool:
        if fault == "throttled":
            writer.write(_http(400, _THROTTLE))
            return True
        if fault == "error_before":
            writer.write(_http(500, _ERROR))
            return True
        if fault == "lost":
            await self._hold()
            return False
        if fault == "late":
            task = asyncio.create_task(self._execute_late(request))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            await self._hold()
            return False
        if fault == "reset":
            _reset(writer)
            return False
        if fault == "slow":
            await self._hold()
        if fault == "partly":
            writer.write(await self._partly(request, engine))
            return True
        answer = await engine.send(request)
        if fault == "answer_lost":
            await self._hold()
            return False
        if fault == "error_after":
            writer.write(_http(503, _ERROR))
            return True
        if fault == "damaged":
            head, _, body = answer.partition(b"\r\n\r\n")
            writer.write(_http(int(head[9:12]), body, b"x-amz-crc32: 1\r\n"))
            return True
        if fault == "cut":
            writer.write(answer[: max(1, len(answer) - 7)])
            await writer.drain()
            return False
        writer.write(answer)
        if fault == "closed_idle":
            await writer.drain()
            await self._end(reader, writer)
            return False
        return True

    async def _partly(self, request: bytes, engine: "_Engine") -> bytes:
        """Have some writes of a batch executed, and return the others as unprocessed."""
        head, _, body = request.partition(b"\r\n\r\n")
        whole = json.loads(body)
        [(table, writes)] = whole["RequestItems"].items()
        done = [write for write in writes if self.random.random() < 0.5]  # noqa: PLR2004 - half
        if done:
            part = json.dumps({**whole, "RequestItems": {table: done}}).encode()
            head = _LENGTH.sub(b"\r\ncontent-length: %d" % len(part), head)
            answer = await engine.send(head + b"\r\n\r\n" + part)
            if not answer.startswith(b"HTTP/1.1 200"):
                return answer
        left = json.dumps({"UnprocessedItems": {table: [write for write in writes if write not in done]}}).encode()
        return _http(200, left, b"x-amz-crc32: %d\r\n" % crc32(left))

    async def _end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Close an idle connection from this side. A request that the client sends before it notices is lost."""
        writer.write_eof()
        with suppress(TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            async with asyncio.timeout(1.0):
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                target = _TARGET.search(head)
                self._note(target[1].decode() if target else "", "lost", body)

    async def _hold(self) -> None:
        await asyncio.sleep(self.random.random() ** 2 * self.rates.hold)

    async def _execute_late(self, request: bytes) -> None:
        await asyncio.sleep(self.random.random() ** 2 * self.rates.late)
        engine = _Engine(self.engine)
        try:
            await engine.send(request)
        finally:
            engine.close()


class _Engine:
    """A connection to the engine that is opened for the first request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes) -> bytes:
        """Send a request, and return the whole answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        return head + (await reader.readexactly(int(length[1])) if length else b"")

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()


def _http(status: int, body: bytes, headers: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %d Answer\r\ncontent-type: application/x-amz-json-1.0\r\n%scontent-length: %d\r\n\r\n"
    return head % (status, headers, len(body)) + body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close the connection with a reset."""
    writer.transport.abort()


async def _serve(engine: int, seed: int) -> None:
    proxy = Proxy(engine, Random(seed))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 24, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    # The process that started this one has ended, so running requests need no answer.
    os._exit(0)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.truth.proxy", description=__doc__)
    parser.add_argument("engine", type=int, help="port of the engine on 127.0.0.1")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(_serve(asked.engine, asked.seed))


if __name__ == "__main__":
    main()
