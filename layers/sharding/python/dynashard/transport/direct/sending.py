"""What one attempt needs, whichever way it waits: the signed request, a connection, and the meaning of the answer."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from dynashard.runtime import Runtime
from dynashard.transport.attempts import resend_of
from dynashard.transport.classification import unreached
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.deadline import remaining
from dynashard.transport.direct.connections import Connection, ConnectionPool, ConnectionsInUseError, Dialer
from dynashard.transport.direct.credentials import Credentials, Source
from dynashard.transport.direct.endpoint import Endpoint
from dynashard.transport.direct.exchange import Exchange
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.signing import RequestWriter
from dynashard.transport.interface import Reader, Resend, Settings, Wire, with_capacity
from dynashard.transport.wire_format import accepted, body_of, parsed_answer, parsed_body

_OK: Final = 200
_CHECKSUM: Final = "x-amz-crc32"
SHORTEST: Final = 0.001
"""Seconds; a socket with a timeout of 0 would not wait at all."""


class PreparedCall(Struct, frozen=True):
    """A call whose body is made; each attempt signs it again."""

    operation: str
    body: bytes
    resend: Resend
    reader: Reader | None = None


def prepare_call(
    operation: str, request: Mapping[str, Any], resend: Resend | None, reader: Reader | None = None
) -> PreparedCall:
    """Return a call ready to be sent; raises `InvalidValueError` if JSON cannot express a value."""
    body = body_of(operation, with_capacity(operation, request))
    return PreparedCall(operation, body, resend or resend_of(operation, request), reader)


Send = Callable[[PreparedCall], Answer]
"""Sends a request once and returns its answer."""


class Channel:
    """Connections to one endpoint, and what signs the requests on them. Safe to share between threads."""

    def __init__(self, endpoint: Endpoint, credentials: Source, settings: Settings, runtime: Runtime) -> None:
        self.dialer = Dialer(endpoint)
        self.pool = ConnectionPool(settings.max_connections, runtime.clock)
        self.connect_timeout = settings.connect_timeout
        self.read_timeout = settings.read_timeout
        self.clock = runtime.clock
        self.clock_offset = ClockOffset(runtime)
        self.credentials = credentials
        self._writer = RequestWriter(endpoint.authority, endpoint.region)

    def over(self, pool: ConnectionPool) -> "Channel":
        """Return a channel that shares everything with this one but the connections."""
        other = copy(self)
        other.pool = pool
        return other

    def exchange(self, call: PreparedCall, credentials: Credentials | None = None) -> Exchange:
        """Return an attempt with a request signed now, by the source's credentials if it is given none.

        Raises as the credentials' source.
        """
        credentials, now = credentials or self.credentials(call.operation), self.clock()
        request = self._writer.request(call.operation, call.body, credentials, now)
        return Exchange(call.operation, request, now)

    def acquire(self, operation: str) -> Connection | None:
        """Return a usable connection, or None if the caller may open one.

        Raises `EngineUnavailableError` if all are in use for longer than a request may take.
        """
        kept = self.pool.kept()
        if kept is not None:
            return kept
        seconds = min(remaining(), self.connect_timeout + self.read_timeout)
        try:
            return self.pool.acquire(seconds)
        except ConnectionsInUseError as error:
            raise unreached(operation, type(error).__name__, str(error)) from error

    def connect_bound(self) -> float:
        """Return the seconds that opening a connection may take, within the deadline in force."""
        return max(SHORTEST, min(self.connect_timeout, remaining()))

    def read_bound(self, left: float) -> float:
        """Return the seconds that a wait for bytes may take with so many `left` until the deadline in force."""
        return max(SHORTEST, min(self.read_timeout, left))

    def finish(self, connection: Connection, exchange: Exchange, answer: Answer) -> None:
        """Keep the connection of a complete answer for the next request, if it may be used again.

        The answer's date says how far the clock is off.
        """
        date, offset = answer.headers.get("date", ""), self.clock_offset
        # As `observe` does, without a call for each answer.
        if date != offset.date or not offset.since <= exchange.began < offset.again:
            offset.observe(date, exchange.began, self.clock())
        if answer.reusable:
            self.pool.release(connection)
        else:
            self.pool.discard(connection)


def read_answer(operation: str, answer: Answer, attempt: int, reader: Reader | None = None) -> Wire:
    """Return DynamoDB's answer; raises the error that it says. `attempt` is the number of the attempt.

    A `reader` is used if a checksum proves that the body is what DynamoDB sent.
    """
    if answer.status == _OK and answer.body and answer.headers.get(_CHECKSUM) == str(crc32(answer.body)):
        read = None if reader is None else reader(answer.body)
        if read is None:
            read = parsed_body(answer.body)
        if read is not None:
            return read
    return accepted(operation, parsed_answer(answer.status, answer.headers, answer.body), attempt)
