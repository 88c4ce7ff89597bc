"""HTTP connections on which the gateway answers most requests without ASGI.

Uvicorn's protocol parses, keeps order, and ends connections. What ASGI costs for a request without a body is more than
what the gateway does for it: messages, layers of applications, and a second write. Requests with a body, with escapes
in the path, or for another part of the stack go through ASGI.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from dynashard_local.gateway.events import WITHOUT_BODY, HttpRequest, HttpResponse
from dynashard_local.gateway.http_api import refusal
from dynashard_local.hosts import names_us

OWN: Final = ("/local/", "/2015-03-31/")
"""The beginnings of the paths that do not belong to the gateway."""
LATIN: Final = "latin-1"
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_THROUGH_ASGI: Final = frozenset(
    {b"content-length", b"expect", b"transfer-encoding", b"upgrade", b"x-forwarded-for", b"x-forwarded-proto"}
)
"""Headers of requests with a body, and those that uvicorn's layers read."""
_ENDS: Final = (b"", b"?")
"""What follows the path `/`, which is the landing page."""
_OWN_BYTES: Final = tuple(each.encode() for each in OWN)

RECEIVE_SECONDS: Final = 30.0
"""How long a connection may take to send a whole request, as long as API Gateway waits."""

Answer = Callable[[HttpRequest], Awaitable[HttpResponse]]
Log = Callable[[str], None]


class GatewayConnection(HttpToolsProtocol):
    """One connection. `answer` is the gateway's, and `log` gets a line about each request that it answers.

    A connection that does not send a whole request within `receive_seconds` is closed: its client may be gone.
    """

    def __init__(self, answer: Answer, log: Log, *, receive_seconds: float = RECEIVE_SECONDS, **options: Any) -> None:
        super().__init__(**options)
        self._answer = answer
        self._log = log
        self._receive_seconds = receive_seconds
        self._partial = True
        self._ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, and wait for the rest of a request."""
        super().data_received(data)
        self._await_request()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not valid HTTP, in the gateway's form."""
        self.transport.write(_text(refusal(400, msg), self.server_state.default_headers, "", keep_alive=False))
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._partial = True

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._partial = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._partial = False
        self._await_request()

    def _await_request(self) -> None:
        if not self._partial:
            if self._ending is not None:
                self._ending.cancel()
                self._ending = None
        elif self._ending is None:
            self._ending = self.loop.call_later(self._receive_seconds, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Let the gateway answer the request at once, or let it go through ASGI."""
        if not self._direct():
            super().on_headers_complete()
            return
        before, self.cycle = self.cycle, self._cycle()
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _direct(self) -> bool:
        headers = dict(self.headers)
        return (
            # Of a header that is sent twice, the code for all requests knows which one counts.
            len(headers) == len(self.headers)
            and headers.keys().isdisjoint(_THROUGH_ASGI)
            and names_us(headers.get(b"host", b""))
            and self.url.startswith(b"/")
            and self.url[1:2] not in _ENDS
            and not self.url.startswith(_OWN_BYTES)
            and b"%" not in self.url
            and b"#" not in self.url
            and self.client is not None
        )

    def _cycle(self) -> "_Cycle":
        version = self.parser.get_http_version()
        method = self.scope["method"] = self.parser.get_method().decode(LATIN)
        path, _, query = self.url.decode(LATIN).partition("?")
        headers = [(name.decode(LATIN), value.decode(LATIN)) for name, value in self.headers]
        host, port = self.client or ("-", 0)
        return _Cycle(
            HttpRequest(method, path, query, headers, source_ip=host, protocol=f"HTTP/{version}"),
            port,
            self._answer,
            self._log,
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )


class _Cycle(RequestResponseCycle):
    """A request and its answer. Errors are handled, and the answer to them is written, as for ASGI's applications."""

    def __init__(self, request: HttpRequest, port: int, answer: Answer, log: Log, **options: Any) -> None:
        super().__init__(**options)
        self._request = request
        self._port = port
        self._answer = answer
        self._log = log

    async def run_asgi(self, app: Any) -> None:
        """Answer the request. `app`, which is ASGI's, is not used."""
        del app
        await super().run_asgi(self._respond)

    async def _respond(self, *_: Any) -> None:
        response = await self._answer(self._request)
        request = self._request
        self._log(access_line(request, self._port, response.status))
        if self.flow.write_paused:
            await self.flow.drain()
        if self.disconnected:
            return
        content = _text(response, self.default_headers, request.method, keep_alive=self.keep_alive)
        self.response_started = self.response_complete = True
        self.transport.write(content)
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def access_line(request: HttpRequest, port: int, status: int) -> str:
    """Return the line about a request, as uvicorn writes it."""
    path = f"{request.path}?{request.query}" if request.query else request.path
    line = f"{request.method} {path} {request.protocol}"
    return f'INFO:     {request.source_ip}:{port} - "{line}" {status} {_PHRASES.get(status, "")}'


def header_lines(response: HttpResponse, method: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer to a method, with the length of its body if that is known.

    The length in an answer to HEAD is that of the answer to GET (RFC 9110, section 8.6), which a function that has
    left out its body does not say.
    """
    lines = [
        (name.encode(LATIN, "replace"), value.encode(LATIN, "replace"))
        for name, value in response.headers
        if name != "content-length"
    ]
    if response.status in WITHOUT_BODY or (method == "HEAD" and not response.body):
        return lines
    return [(b"content-length", b"%d" % len(response.body)), *lines]


def _text(response: HttpResponse, more: list[tuple[bytes, bytes]], method: str, *, keep_alive: bool) -> bytes:
    parts, lines = [STATUS_LINE[response.status]], [*more, *header_lines(response, method)]
    names, values = b"".join([name for name, _ in lines]), b"".join([value for _, value in lines])
    if HEADER_RE.search(names) or HEADER_VALUE_RE.search(values):
        raise RuntimeError("Invalid HTTP header.")
    for name, value in lines:
        parts += [name, b": ", value, b"\r\n"]
    parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    if method != "HEAD" and response.status not in WITHOUT_BODY:
        parts.append(response.body)
    return b"".join(parts)
