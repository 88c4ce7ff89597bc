"""The port of the engine that people and tools use.

    python -m dynashard_local.engine.front ENGINE_HOST ENGINE_PORT PORT [SCENARIO]

The engine itself answers every web page that finds its port. So it listens where pages cannot look, and this process
serves on PORT of 127.0.0.1, on a free one if that is 0, and prints it. It refuses requests that a browser sends for a
page, and those for another host, whose name a page may have resolved to 127.0.0.1. All others are passed on; with
SCENARIO through the simulator's model of partitions. It ends with its standard input.
"""

import asyncio
import os
import re
import sys
from contextlib import suppress
from typing import Final

from dynashard_local.engine.messages import LENGTH, Answer, Send, response
from dynashard_local.hosts import names_us

_HOST: Final = re.compile(rb"\r\nhost: *([^\r]*)", re.IGNORECASE)
_OF_A_PAGE: Final = re.compile(rb"\r\n(?:origin|sec-fetch-site): *([^\r]*)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_EXPECTS: Final = re.compile(rb"\r\nexpect: *100-continue *(?=\r\n)", re.IGNORECASE)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LIMIT: Final = 1 << 24
RECEIVE_SECONDS: Final = 30.0
"""How long a connection may take to send a whole request."""
REFUSED: Final = "com.amazon.coral.service#AccessDeniedException"


async def passed_on(head: bytes, body: bytes, send: Send) -> bytes:
    """Answer a request as the engine does."""
    return await send(head, body)


class Front:
    """Serves connections, each with a connection of its own to the engine.

    A connection that does not send a whole request within `receive_seconds` is closed: its client may be gone. Between
    requests it may rest, because clients keep connections for the next one.
    """

    def __init__(
        self, host: str, port: int, answer: Answer = passed_on, *, receive_seconds: float = RECEIVE_SECONDS
    ) -> None:
        self._engine = (host, port)
        self._answer = answer
        self._receive_seconds = receive_seconds

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it, or it sends what is refused."""
        engine, engine_writer = await asyncio.open_connection(*self._engine, limit=_LIMIT)

        async def send(head: bytes, body: bytes) -> bytes:
            engine_writer.write(head + body)
            return b"".join(await _message(engine))

        begun = b""
        try:
            while True:
                async with asyncio.timeout(self._receive_seconds):
                    head = begun + await reader.readuntil(b"\r\n\r\n")
                    problem = refusal(head)
                    # Nobody would pass on the answer that follows if the engine sent this one.
                    head, expected = _EXPECTS.subn(b"", head)
                    if expected and not problem:
                        writer.write(_CONTINUE)
                    body = b"" if problem else await _body(head, reader)
                if problem:
                    writer.write(response(403, {"__type": REFUSED, "message": problem}))
                    break
                writer.write(await self._answer(head, body, send))
                await writer.drain()
                begun = await reader.readexactly(1)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            pass
        finally:
            for each in (engine_writer, writer):
                with suppress(ConnectionError):
                    each.close()


def refusal(head: bytes) -> str:
    """Return why a request is refused, by its line and headers; empty if it is not."""
    host = _HOST.search(head)
    if host is None or not names_us(host[1]):
        return "The local engine is only for requests to 127.0.0.1 and localhost."
    if page := _OF_A_PAGE.search(head):
        origin = page[1].decode("latin-1")
        return f"The local engine does not answer web pages (this one is {origin}). Use the API instead."
    if _CHUNKED.search(head):
        return "The local engine needs a Content-Length."
    return ""


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    return head, await _body(head, reader)


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    length = LENGTH.search(head)
    return await reader.readexactly(int(length[1])) if length else b""


async def _serve(front: Front, port: int) -> None:
    server = await asyncio.start_server(front.serve, "127.0.0.1", port, limit=_LIMIT, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    # The process that started this one has ended, so requests under way need no answer.
    os._exit(0)


def main(arguments: list[str]) -> int:
    """Serve until standard input ends. Returns 1, with a line on stderr, if it cannot begin."""
    host, engine, port, *scenario = arguments
    answer: Answer = passed_on
    try:
        if scenario:
            from dynashard_local.engine.simulated_limits import limits_of  # noqa: PLC0415 - the simulator takes longer to import than to serve

            answer = limits_of(scenario[0])
        asyncio.run(_serve(Front(host, int(engine), answer), int(port)))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"dynashard: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
