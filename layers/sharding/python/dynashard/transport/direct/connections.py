"""Connections to one endpoint: opened, kept alive, and checked before a request is written to one.

A kept connection that died while it was idle is the most common fault. It is noticed before a byte is written, so the
request is certainly not executed: a connection is dropped after `MAX_IDLE_SECONDS` by the wall clock, because a frozen
Lambda does not notice a reset, and if anything can be read from it, which is a close or bytes that nobody asked for.
"""

import select
import socket
import ssl
from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import Any, Final

from msgspec import Struct

from dynashard.transport.certificates import unreadable
from dynashard.transport.direct.endpoint import Endpoint
from dynashard.transport.forks import after_fork, own_lock
from dynashard.transport.lookups import Lookup
from dynashard.waiting import Wakeup, in_thread, wakeup

Closing = Callable[[int], None]
"""Receives the file number of a socket that will be closed."""
MAX_IDLE_SECONDS: Final = 30.0
"""A connection that was idle for longer is replaced: its other end may be gone unnoticed."""


class ConnectionsInUseError(Exception):
    """All connections are in use, and none became free in time."""


class Connection:
    """An open connection, for one request at a time."""

    __slots__ = ("__weakref__", "_closing", "_poll", "_timeout", "secure", "socket", "used")

    def __init__(
        self, opened: socket.socket, now: float, timeout: float | None, closing: Closing | None = None
    ) -> None:
        self.socket = opened
        self.secure = isinstance(opened, ssl.SSLSocket)
        self.used = now
        self._timeout = timeout
        self._closing = closing
        self._poll = select.poll()
        self._poll.register(opened, select.POLLIN)
        # Not `close`: the loop of the parent, whose selector a child shares, would forget the parent's socket.
        after_fork(self, Connection._close_socket)

    def set_timeout(self, seconds: float) -> None:
        """Bound each wait of the socket from now on; 0 makes it wait for nothing."""
        if seconds != self._timeout:
            self.socket.settimeout(seconds)
            self._timeout = seconds

    def pending(self) -> bool:
        """Whether bytes have arrived that no poll reports, because TLS has decrypted them already."""
        return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def usable(self, now: float) -> bool:
        """Whether a request may be written; `now` is the wall clock."""
        # A clock that was set back does not tell for how long it was idle.
        if not 0 <= now - self.used <= MAX_IDLE_SECONDS:
            return False
        return not self._poll.poll(0) and not (self.secure and self.pending())

    def close(self) -> None:
        """Close the socket."""
        if self._closing is not None:
            self._closing(self.socket.fileno())
        self.socket.close()

    def _close_socket(self) -> None:
        self.socket.close()


class Dialer:
    """Opens sockets to an endpoint, verified if it is secure. Safe to share between threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # A text would be encoded by a codec for names in all scripts, which takes 2 ms to import.
        self._host: Any = endpoint.host.encode() if endpoint.host.isascii() else endpoint.host
        self._is_address = ":" in endpoint.host or endpoint.host.replace(".", "").isdecimal()
        self._lock = own_lock(self)
        self._context: ssl.SSLContext | None = None
        # The system's function for names neither ends at a deadline nor lets an event loop go on.
        self._found = Lookup(self._look_up, "the addresses of the endpoint's name")

    def addresses(self) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
        """Return the endpoint's addresses, in the order to try them.

        Raises `OSError` if its name has none, or if they are not known by the deadline in force.
        """
        found = self._look_up() if self._is_address else self._found.result()
        return [(family, address) for family, _, _, _, address in found]

    def _look_up(self) -> list[Any]:
        return socket.getaddrinfo(self._host, self._endpoint.port, type=socket.SOCK_STREAM)

    def open(self, bound: Callable[[], float]) -> socket.socket:
        """Return an open socket. Raises `OSError`.

        `bound` is asked for the seconds that each step may take: connecting to each address, and the handshake.
        """
        opened = self._connected(bound)
        try:
            set_options(opened)
            opened.settimeout(bound())
            return self.secured(opened, handshake=True)
        except BaseException:
            opened.close()
            raise

    def _connected(self, bound: Callable[[], float]) -> socket.socket:
        failure: OSError | None = None
        for family, address in self.addresses():
            try:
                return _connected_to(family, address, bound())
            except OSError as error:
                failure = error
        raise failure or OSError("the endpoint's name has no address")

    def secured(self, opened: socket.socket, *, handshake: bool) -> socket.socket:
        """Return the socket with TLS around it if the endpoint is secure; the certificate and its host are verified."""
        context = self.context()
        if context is None:
            return opened
        return context.wrap_socket(opened, server_hostname=self._endpoint.host, do_handshake_on_connect=handshake)

    def prepare(self) -> None:
        """Read the root certificates, if that is to be done, where it does not stop an event loop."""
        if self._context is None and self._endpoint.secure:
            in_thread(self.context)

    def context(self) -> ssl.SSLContext | None:
        """Return the one context of all connections, None without TLS. Cost: reads the root certificates, once."""
        with self._lock:
            if self._context is None and self._endpoint.secure:
                bundle = self._endpoint.ca_bundle
                try:
                    self._context = ssl.create_default_context(cafile=bundle)
                except OSError as error:
                    raise unreadable(bundle, error) from error
            return self._context


def _connected_to(family: socket.AddressFamily, address: tuple[object, ...], seconds: float) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.settimeout(seconds)
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened


def set_options(opened: socket.socket) -> None:
    """Set the options of every socket: small requests leave at once, and dead peers are noticed."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class _Waiting(Struct, eq=False):
    """A caller that waits: it is `served` with a connection, or with the permission to open one."""

    wakeup: Wakeup
    served: bool = False
    connection: Connection | None = None


class ConnectionPool:
    """At most `most` connections, in use or idle; the one used last is the next. Safe to share between threads.

    Callers that wait are served in the order in which they came: what becomes free belongs to the first of them, before
    its thread or task runs. `clock` is the wall clock, in epoch seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = max(1, most)
        self._clock = clock
        self._closed = False
        self._begin()
        after_fork(self, ConnectionPool._begin)

    def _begin(self) -> None:
        """Begin without connections; those of the process from which this one was forked close themselves."""
        # Used without the lock: `pop` and `append` of a list are atomic.
        self._idle: list[Connection] = []
        self._open = 0
        self._queue: deque[_Waiting] = deque()
        # Reentrant: the garbage collector may end a call of this thread, which gives its connection back.
        self._lock = RLock()

    def connection(self, opened: socket.socket) -> Connection:
        """Return the connection of an open socket that waits for nothing."""
        return Connection(opened, self._clock(), 0.0)

    def kept(self) -> Connection | None:
        """Return a usable connection that is idle, for `release` or `discard` to end; None if there is none."""
        while (kept := self._popped()) is not None:
            if kept.usable(self._clock()):
                return kept
            self.discard(kept)
        return None

    def acquire(self, seconds: float) -> Connection | None:
        """Return a usable connection, or None if the caller may open one; `release` or `discard` ends either.

        Raises `ConnectionsInUseError` if none becomes free within so many seconds.
        """
        kept = self.kept()
        if kept is not None:
            return kept
        with self._lock:
            if self._open < self._most:
                self._open += 1
                return None
            if seconds <= 0:
                raise self._in_use()
            # Queued before the list is looked at, and `release` adds to the list before it looks at the queue: so one
            # of the two notices the other.
            waiting = _Waiting(wakeup())
            self._queue.append(waiting)
            self._serve()
        try:
            waiting.wakeup.wait(seconds)
        except BaseException:
            self._leave(waiting)
            raise
        return self._received(waiting)

    def _serve(self) -> None:
        """Let callers that wait have what is free. The lock is held."""
        while self._queue and (self._idle or self._open < self._most):
            waiting = self._queue.popleft()
            waiting.connection = self._popped()
            if waiting.connection is None:
                if self._open >= self._most:
                    self._queue.appendleft(waiting)
                    return
                self._open += 1
            waiting.served = True
            waiting.wakeup.set()

    def _received(self, waiting: _Waiting) -> Connection | None:
        """Return what a caller has waited for; it may open a connection in place of one that has died since."""
        with self._lock:
            if not waiting.served:
                self._queue.remove(waiting)
                raise self._in_use()
        kept = waiting.connection
        if kept is None or kept.usable(self._clock()):
            return kept
        kept.close()
        return None

    def _leave(self, waiting: _Waiting) -> None:
        """Give up waiting. What the caller was served with already goes to the next one."""
        with self._lock:
            if not waiting.served:
                self._queue.remove(waiting)
                return
        self.discard(waiting.connection)

    def _in_use(self) -> ConnectionsInUseError:
        return ConnectionsInUseError(f"all {self._most} connections are in use")

    def _popped(self) -> Connection | None:
        if not self._idle:
            return None
        try:
            return self._idle.pop()
        except IndexError:  # another thread took it
            return None

    def release(self, connection: Connection) -> None:
        """Keep a connection, whose answer was read to its end, for the next request."""
        connection.used = self._clock()
        self._idle.append(connection)
        if self._closed:
            # Looked at after the connection was added, so that one of this and a concurrent `close` finds it.
            self.close()
        elif self._queue:
            with self._lock:
                self._serve()

    def discard(self, connection: Connection | None) -> None:
        """Close a connection of an unknown state; None gives back the permission to open one."""
        if connection is not None:
            connection.close()
        with self._lock:
            self._open -= 1
            self._serve()

    def close(self) -> None:
        """Close idle connections now, and those in use when they are released."""
        self._closed = True
        while (connection := self._popped()) is not None:
            self.discard(connection)
