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
from dataclasses import dataclass
from typing import Final

from dynashard_local.engine.messages import LENGTH, Answer, Head, Send, response
from dynashard_local.hosts import names_us

_OF_A_PAGE: Final = (b"origin", b"sec-fetch-site")
"""Headers that only browsers send."""
_EXPECTS: Final = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_NUMBER: Final = re.compile(rb"0*(\d{1,9})")
_HEAD_BYTES: Final = 1 << 16
_BODY_BYTES: Final = 1 << 24
"""The largest body of a request, which is DynamoDB's."""
RECEIVE_SECONDS: Final = 30.0
"""How long a connection may take to send a whole request."""
_ERRORS: Final = "com.amazon.coral.service#"


async def passed_on(head: bytes, body: bytes, send: Send) -> bytes:
    """Answer a request as the engine does."""
    return await send(head, body)


class RefusedError(Exception):
    """The request does not reach the engine. `kind` is the name of DynamoDB's error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def answer(self) -> bytes:
        """Return the answer in the engine's form."""
        return response(self.status, {"__type": f"{_ERRORS}{self.kind}", "message": str(self)})


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
        engine = None
        try:
            engine = _Engine(*await asyncio.open_connection(*self._engine, limit=_BODY_BYTES))
            await self._serve(reader, writer, engine)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            for each in (writer,) if engine is None else (engine.writer, writer):
                with suppress(ConnectionError):
                    each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, engine: "_Engine") -> None:
        begun, keeps = b"", True
        while keeps:
            try:
                async with asyncio.timeout(self._receive_seconds):
                    text = begun + await _head(reader)
                    head = readable(text)
                    length = body_length(head)
                    # Nobody would pass on the answer that follows if the engine sent this one.
                    text, expected = _EXPECTS.subn(b"", text)
                    if expected:
                        writer.write(_CONTINUE)
                    body = await reader.readexactly(length)
            except RefusedError as refused:
                await self._refuse(reader, writer, refused)
                return
            writer.write(await self._answer(text, body, engine.send))
            await writer.drain()
            keeps = head.keeps
            begun = await reader.readexactly(1) if keeps else b""

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refused: RefusedError) -> None:
        writer.write(refused.answer())
        writer.write_eof()
        # A client that is still sending reads the answer only if nobody resets the connection meanwhile.
        async with asyncio.timeout(self._receive_seconds):
            while await reader.read(_HEAD_BYTES):
                pass


@dataclass(frozen=True, slots=True)
class _Engine:
    """A connection to the engine."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, head: bytes, body: bytes) -> bytes:
        """Return the engine's answer to a request."""
        self.writer.write(head + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        # An answer to HEAD says the length of a body that it does not have.
        length = None if head.startswith(b"HEAD ") else LENGTH.search(answer)
        return answer + await self.reader.readexactly(int(length[1])) if length else answer


def readable(text: bytes) -> Head:
    """Return the line and headers of a request that the engine may answer, or refuse it."""
    head = Head.parse(text)
    if head is None:
        raise RefusedError(400, "SerializationException", "The request is not valid HTTP/1.1.")
    headers = head.headers
    if not names_us(headers.get(b"host", b"")):
        raise RefusedError(
            403, "AccessDeniedException", "The local engine is only for requests to 127.0.0.1 and localhost."
        )
    for page in (headers[name] for name in _OF_A_PAGE if name in headers):
        origin = page.decode("latin-1")
        message = f"The local engine does not answer web pages (this one is {origin}). Use the API instead."
        raise RefusedError(403, "AccessDeniedException", message)
    return head


def body_length(head: Head) -> int:
    """Return how long the body of a request is, or refuse one that is too large or has no clear end."""
    if b"transfer-encoding" in head.headers:
        raise RefusedError(411, "SerializationException", "The local engine needs a Content-Length.")
    stated = head.headers.get(b"content-length", b"0")
    number = _NUMBER.fullmatch(stated)
    if not stated.isdigit():
        raise RefusedError(400, "SerializationException", "Content-Length must be a whole number.")
    if number is None or int(number[1]) > _BODY_BYTES:
        message = f"The body is too large; it must have at most {_BODY_BYTES} bytes."
        raise RefusedError(413, "RequestEntityTooLargeException", message)
    return int(number[1])


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        message = f"The headers are too large; they must have at most {_HEAD_BYTES} bytes."
        raise RefusedError(431, "SerializationException", message) from None


async def _serve(front: Front, port: int) -> None:
    server = await asyncio.start_server(front.serve, "127.0.0.1", port, limit=_HEAD_BYTES, backlog=512)
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
