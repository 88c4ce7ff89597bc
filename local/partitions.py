"""`python -m local.partitions ENGINE PORT SCENARIO`: the simulator's model of partitions before the local engine.

It serves on PORT of 127.0.0.1, on a free one if that is 0, and prints it. Requests are passed on to the port ENGINE.
What the scenario's table would throttle, at a 500th of its limits, is answered with 400 as DynamoDB does. A GET of
`/throttles` returns what was throttled. It ends with its standard input.
"""

import asyncio
import os
import re
import sys
import time
from contextlib import suppress
from typing import Final

import orjson

from tools.failure import CommandError
from tools.simulate.live import LiveModel, scaled
from tools.simulate.live_throttles import PATH
from tools.simulate.scenario import load

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TARGET: Final = re.compile(rb"\r\nx-amz-target: *DynamoDB_20120810\.(\w+)", re.IGNORECASE)
_THROTTLES: Final = re.compile(rb"GET %s(?:\?seconds=(\d+))? " % PATH.encode())
_LIMIT: Final = 1 << 24
_OK: Final = b"HTTP/1.1 200"
_HEAD: Final = b"HTTP/1.1 %d Answer\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n"


class Front:
    """Serves connections, each with a connection of its own to the engine."""

    def __init__(self, engine: int, model: LiveModel) -> None:
        self._engine = engine
        self._model = model

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        engine, engine_writer = await asyncio.open_connection("127.0.0.1", self._engine, limit=_LIMIT)
        try:
            while True:
                head, body = await _message(reader)
                writer.write(await self._answer(head, body, engine, engine_writer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for each in (engine_writer, writer):
                with suppress(ConnectionError):
                    each.close()

    async def _answer(
        self, head: bytes, body: bytes, engine: asyncio.StreamReader, engine_writer: asyncio.StreamWriter
    ) -> bytes:
        target = _TARGET.search(head)
        if asked := _THROTTLES.match(head):
            return _response(200, self._model.throttled(float(asked[1] or 900)))
        if target is None:
            return await _sent(head + body, engine, engine_writer)
        operation, request = target[1].decode(), orjson.loads(body)
        decision = self._model.decide(operation, request)
        if decision.refused is not None:
            return _response(400, decision.refused)
        if decision.unprocessed:
            body = orjson.dumps(decision.request)
            head = _LENGTH.sub(b"\r\ncontent-length: %d" % len(body), head)
        answer = await _sent(head + body, engine, engine_writer)
        if not answer.startswith(_OK):
            return answer
        result = orjson.loads(answer.partition(b"\r\n\r\n")[2])
        changed = self._model.answered(operation, decision, result)
        return _response(200, changed) if decision.unprocessed else answer


async def _sent(message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(message)
    return b"".join(await _message(reader))


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return head, await reader.readexactly(int(length[1])) if length else b""


def _response(status: int, body: object) -> bytes:
    text = orjson.dumps(body)
    return _HEAD % (status, len(text)) + text


async def _serve(engine: int, port: int, model: LiveModel) -> None:
    server = await asyncio.start_server(Front(engine, model).serve, "127.0.0.1", port, limit=_LIMIT, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    # The process that started this one has ended, so requests under way need no answer.
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Serve until standard input ends. Returns 1, with a line on stderr, if it cannot begin."""
    engine, port, scenario = arguments
    try:
        first = next(iter(load(scenario).values()))
        asyncio.run(_serve(int(engine), int(port), LiveModel(scaled(first), time.monotonic)))
    except (CommandError, OSError) as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
