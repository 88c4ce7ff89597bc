"""One attempt that never waits: it opens its connection, writes and reads as far as the socket allows."""

import errno
import os
import selectors
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, Protocol

from dynashard.errors import DynashardError
from dynashard.transport.deadline import remaining
from dynashard.transport.direct.blocking import RECEIVED, connection_failure
from dynashard.transport.direct.connections import Connection, ConnectionsInUseError, set_options
from dynashard.transport.direct.exchange import TIMED_OUT, Exchange
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.sending import SHORTEST, Channel, PreparedCall

if TYPE_CHECKING:
    from dynashard.transport.direct.credentials import Credentials

_UNDER_WAY: Final = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN})


class Opening:
    """Opens a connection without waiting: one address after the other, then the handshake."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        channel.dialer.prepare()
        self._addresses = channel.dialer.addresses()
        self._connected = False
        self.socket = self._begun()

    def advance(self) -> int:
        """Go on, and return the events to wait for; 0 once the connection is open. Raises `OSError`."""
        if not self._connected:
            failure = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure:
                raise OSError(failure, os.strerror(failure))
            self._connected = True
            self.socket = self._channel.dialer.secured(self.socket, handshake=False)
        if isinstance(self.socket, ssl.SSLSocket):
            try:
                self.socket.do_handshake()
            except ssl.SSLWantReadError:
                return selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                return selectors.EVENT_WRITE
        return 0

    def next_address(self) -> bool:
        """Begin with the next address after a failure; False if there is none, or the handshake has begun."""
        if self._connected or not self._addresses:
            return False
        self.socket.close()
        self.socket = self._begun()
        return True

    def _begun(self) -> socket.socket:
        """Return a socket that connects to the next address which does not fail at once."""
        while True:
            try:
                return _connecting(*self._addresses.pop(0))
            except OSError:
                if not self._addresses:
                    raise


def _connecting(family: socket.AddressFamily, address: tuple[object, ...]) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.settimeout(0.0)
        set_options(opened)
        failure = opened.connect_ex(address)
    except BaseException:
        opened.close()
        raise
    if failure and failure not in _UNDER_WAY:
        opened.close()
        raise OSError(failure, os.strerror(failure))
    return opened


class Sockets(Protocol):
    """The sockets of attempts under way: what waits until one of them can go on."""

    def register(self, number: int, events: int, attempt: "PendingAttempt", /) -> object:
        """Advance the attempt once these events happen to the socket with this file number."""
        ...

    def unregister(self, number: int, /) -> object:
        """Wait no longer for events of a socket."""
        ...

    def rest(self, number: int, /) -> object:
        """Do what `unregister` does, for the socket of a complete answer, which will often be registered again."""
        ...

    def collect(self, seconds: float) -> list[tuple["PendingAttempt", Answer | DynashardError]]:
        """Wait until something happens, and advance what it concerns; return the attempts that have ended, and how.

        It waits so many seconds at most.
        """
        ...


class SelectedSockets(selectors.DefaultSelector):
    """Sockets of the calling thread, which it waits for; see `Sockets`."""

    def rest(self, number: int, /) -> None:
        """Wait no longer for events of a socket."""
        self.unregister(number)

    def collect(self, seconds: float) -> list[tuple["PendingAttempt", Answer | DynashardError]]:
        """Wait until something happens, and advance the attempts that it concerns."""
        ended: list[tuple[PendingAttempt, Answer | DynashardError]] = []
        for key, _ in self.select(seconds):
            attempt: PendingAttempt = key.data
            try:
                answer = attempt.advance()
            except DynashardError as error:
                ended.append((attempt, error))
                continue
            if answer is not None:
                ended.append((attempt, answer))
        return ended


class PendingAttempt:
    """An attempt under way, registered with the sockets of its caller.

    `expires` is when `time_out` is due, by the monotonic clock; each progress puts it off, up to the deadline of the
    operation.
    """

    def __init__(self, channel: Channel, call: PreparedCall, sockets: Sockets, kept: Connection | None) -> None:
        self._channel = channel
        self._call = call
        self._sockets = sockets
        self._connection = kept
        self._opening: Opening | None = None
        self._exchange: Exchange | None = None
        self._credentials: Credentials | None = None
        self._registered = -1
        self._events = 0
        self._writing = True
        self._ended = False
        self._end = time.monotonic() + max(SHORTEST, remaining())
        self.expires = self._end

    def begin(self) -> None:
        """Open a connection, or write to the kept one. Raises as `advance`."""
        try:
            # Nothing waits for them later on, when a socket is ready.
            self._credentials = self._channel.credentials(self._call.operation)
            if self._connection is None:
                self._open_first()
                self._put_off(self._channel.connect_timeout)
            else:
                self._connection.set_timeout(0.0)
                self._begin_writing(self._connection)
        except BaseException:
            self.abandon()
            raise

    def go_on(self, exchange: Exchange) -> None:
        """Write the rest of a request of which some is written to the kept connection. Raises as `advance`."""
        try:
            assert self._connection is not None  # noqa: S101 - it is kept
            self._exchange = exchange
            self._put_off(self._channel.read_timeout)
            self._write(exchange, self._connection)
        except BaseException:
            self.abandon()
            raise

    def advance(self) -> Answer | None:
        """Go on as far as the socket allows; return the answer once it is complete.

        Raises `EngineUnavailableError`, or `OutcomeUnknownError` for a write, if the attempt fails.
        """
        try:
            if self._exchange is None or self._connection is None:
                self._open()
                return None
            if self._writing:
                self._write(self._exchange, self._connection)
                return None
            answer = self._read(self._exchange, self._connection)
        except BaseException:
            self.abandon()
            raise
        if answer is not None:
            self._ended = True
            self._rest()
            self._channel.finish(self._connection, self._exchange, answer)
        return answer

    def left(self) -> float:
        """Return the seconds until it expires."""
        return max(0.0, self.expires - time.monotonic())

    def time_out(self) -> None:
        """Go on with the endpoint's next address if connecting to one took too long.

        Raises the error of an attempt that has expired, and closes its connection.
        """
        opening, failure = self._opening, TimeoutError("no connection was made in time")
        if opening is not None and time.monotonic() < self._end:
            try:
                self._open_next(opening, failure)
            except BaseException:
                self.abandon()
                raise
            return
        self.abandon()
        if self._exchange is None:
            raise connection_failure(self._call.operation, failure)
        raise self._exchange.failed(TIMED_OUT, "no answer came in time")

    def abandon(self) -> None:
        """Close the connection, unless the attempt has ended."""
        if self._ended:
            return
        self._ended = True
        self._await(-1, 0)
        if self._opening is not None:
            self._opening.socket.close()
        self._channel.pool.discard(self._connection)

    def _open_first(self) -> None:
        try:
            self._opening = Opening(self._channel)
        except OSError as error:
            raise connection_failure(self._call.operation, error) from error
        self._await(self._opening.socket.fileno(), selectors.EVENT_WRITE)

    def _open(self) -> None:
        opening = self._opening
        assert opening is not None  # noqa: S101 - without a connection there is an attempt to open one
        try:
            events = opening.advance()
        except OSError as error:
            self._open_next(opening, error)
            return
        if events:
            self._await(opening.socket.fileno(), events)
            return
        self._opening = None
        self._connection = self._channel.pool.connection(opening.socket)
        self._begin_writing(self._connection)

    def _open_next(self, opening: Opening, failure: OSError) -> None:
        self._await(-1, 0)
        self._put_off(self._channel.connect_timeout)
        try:
            again = opening.next_address()
        except OSError as error:
            raise connection_failure(self._call.operation, error) from error
        if not again:
            raise connection_failure(self._call.operation, failure) from failure
        self._await(opening.socket.fileno(), selectors.EVENT_WRITE)

    def _begin_writing(self, connection: Connection) -> None:
        self._exchange = self._channel.exchange(self._call, self._credentials)
        self._put_off(self._channel.read_timeout)
        self._write(self._exchange, connection)

    def _write(self, exchange: Exchange, connection: Connection) -> None:
        try:
            while unsent := exchange.unsent():
                exchange.wrote(connection.socket.send(unsent))
                self._put_off(self._channel.read_timeout)
        except (BlockingIOError, ssl.SSLWantWriteError):
            self._await(connection.socket.fileno(), selectors.EVENT_WRITE)
        except ssl.SSLWantReadError:
            self._await(connection.socket.fileno(), selectors.EVENT_READ)
        except OSError as error:
            raise exchange.broken(error) from error
        else:
            self._writing = False
            self._await(connection.socket.fileno(), selectors.EVENT_READ)

    def _read(self, exchange: Exchange, connection: Connection) -> Answer | None:
        try:
            while True:
                answer = exchange.received(connection.socket.recv(RECEIVED))
                if answer is not None:
                    return answer
                self._put_off(self._channel.read_timeout)
                if not connection.pending():
                    break
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except ssl.SSLWantWriteError:
            self._await(connection.socket.fileno(), selectors.EVENT_WRITE)
            return None
        except OSError as error:
            raise exchange.broken(error) from error
        self._await(connection.socket.fileno(), selectors.EVENT_READ)
        return None

    def _put_off(self, seconds: float) -> None:
        self.expires = min(self._end, time.monotonic() + seconds)

    def _await(self, number: int, events: int) -> None:
        """Wait for these events of the socket with this file number; none with 0 events.

        Numbers are registered rather than sockets, because TLS wraps a socket and keeps its number.
        """
        if (number, events) == (self._registered, self._events):
            return
        if self._events:
            self._sockets.unregister(self._registered)
        if events:
            self._sockets.register(number, events, self)
        self._registered, self._events = number, events

    def _rest(self) -> None:
        if self._events:
            self._sockets.rest(self._registered)
        self._registered, self._events = -1, 0


def begin_attempt(channel: Channel, call: PreparedCall, sockets: Sockets, *, wait: bool) -> PendingAttempt | None:
    """Begin an attempt within the deadline in force.

    Returns None if all connections are in use and `wait` is false. Raises as `PendingAttempt.advance`, or
    `EngineUnavailableError` if none becomes free in time.
    """
    if wait:
        kept = channel.acquire(call.operation)
    else:
        try:
            kept = channel.pool.acquire(0.0)
        except ConnectionsInUseError:
            return None
    attempt = PendingAttempt(channel, call, sockets, kept)
    attempt.begin()
    return attempt
