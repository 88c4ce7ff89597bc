"""A connection pool: signed requests over kept-alive connections to the one endpoint of a client.

Botocore's own sender looks up proxies, pools and certificates for every request. This one handles botocore's public
`before-send` event, so signatures and parsing stay botocore's.

A kept connection that died while it was idle is replaced before a byte of a request is written to it: a close by the
other side is noticed, and a connection is not used beyond an age, because a frozen Lambda does not notice a reset. So
after the most common fault the request is certainly not executed.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from queue import LifoQueue
from typing import Any, Final, NamedTuple

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError
from urllib3.util.timeout import _DEFAULT_TIMEOUT

from dynashard.errors import EngineUnavailableError
from dynashard.transport.certificates import unreadable
from dynashard.transport.classification import unanswered, unreached
from dynashard.transport.deadline import remaining
from dynashard.transport.forks import after_fork
from dynashard.transport.interface import Settings

MAX_IDLE_SECONDS: Final = 30.0
"""A connection that was idle for longer is replaced: its other end may be gone unnoticed."""
_SHORTEST: Final = 0.001
"""Seconds; urllib3 refuses a timeout of 0."""
_KEEPALIVE: Final = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class HandshakeError(HTTPError):
    """A connection was not made: no byte of a request was written."""


_NOT_SENT: Final[Mapping[type[HTTPError], str]] = {
    HandshakeError: "HandshakeError",
    NewConnectionError: "EndpointConnectionError",
    ConnectTimeoutError: "ConnectTimeoutError",
}
"""Failures before a byte was written."""


class _Aged:
    """A kept connection that knows its age by the wall clock: the monotonic clock of a frozen Lambda stands still."""

    clock: Callable[[], float] = staticmethod(time.time)
    used = 0.0

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc]
        except OSError as error:
            # Urllib3's own errors say already that there is no connection; they do not extend OSError.
            raise HandshakeError(str(error)) from error
        self.used = self.clock()

    def getresponse(self) -> Any:
        response = super().getresponse()  # type: ignore[misc]
        self.used = self.clock()
        return response

    @property
    def is_connected(self) -> bool:
        """Whether urllib3 may use the connection again; it reconnects otherwise."""
        if not 0 <= self.clock() - self.used <= MAX_IDLE_SECONDS:
            return False
        connected: bool = super().is_connected  # type: ignore[misc]
        return connected


class _Plain(_Aged, HTTPConnection):
    pass


class _Secure(_Aged, HTTPSConnection):
    pass


class IdleConnections(LifoQueue[Any]):
    """The queue of a pool. In a forked process it is empty, and nobody holds its lock, for which finalizers wait."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)
        after_fork(self, IdleConnections._begin)

    def _begin(self) -> None:
        kept = [each for each in self.queue if each is not None and each.sock is not None]
        super().__init__(self.maxsize)
        for connection in kept:
            connection.sock.close()


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain
    QueueCls = IdleConnections


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Secure
    QueueCls = IdleConnections


class Received(NamedTuple):
    """An answer with the attributes that botocore's parsing reads."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes
    raw: None = None


class PooledSender:
    """A handler of `before-send`, with a pool for each URL; botocore sends requests behind a proxy.

    The URL is that of the request: for some regions the one that a client names before differs from it.

    Args:
        settings: timeouts and the number of connections.
        ca_bundle: the file of the trusted root certificates.
        proxied: whether requests to a URL go through a proxy.

    Safe to share between threads.
    """

    def __init__(self, settings: Settings, ca_bundle: str, proxied: Callable[[str], bool]) -> None:
        self._settings = settings
        self._ca_bundle = ca_bundle
        self._proxied = proxied
        self._pools: dict[str, urllib3.HTTPConnectionPool | None] = {}

    def __call__(self, request: Any, event_name: str, **_: Any) -> Received | None:
        """Return the answer, waiting at most until the operation's deadline; raises `EngineUnavailableError`."""
        url = str(request.url)
        if url not in self._pools:
            # Two threads may open a pool each; one of them is used from then on.
            self._pools.setdefault(url, None if self._proxied(url) else self._opened(url))
        if (pool := self._pools[url]) is None:
            return None
        try:
            answer = pool.urlopen(
                request.method,
                urllib3.util.parse_url(url).path or "/",
                body=request.body,
                headers=dict(request.headers.items()),
                retries=False,
                assert_same_host=False,
                decode_content=False,
                timeout=self._timeout(),
            )
        except (HTTPError, MemoryError, OverflowError, ValueError) as error:
            # A damaged chunk may claim any size, even below 0, and `http.client` allocates what it claims.
            raise _failed(event_name.rpartition(".")[2], error) from error
        return Received(answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            if pool is not None:
                pool.close()

    def _opened(self, url: str) -> urllib3.HTTPConnectionPool:
        parsed, settings = urllib3.util.parse_url(url), self._settings
        options: dict[str, Any] = {
            "timeout": urllib3.Timeout(connect=settings.connect_timeout, read=settings.read_timeout),
            "maxsize": settings.max_connections,
            "socket_options": [*HTTPConnection.default_socket_options, _KEEPALIVE],
        }
        if parsed.scheme != "https":
            return _PlainPool(parsed.host or "", parsed.port, **options)
        try:
            # One context for all connections, so the bundle is read once.
            options["ssl_context"] = ssl.create_default_context(cafile=self._ca_bundle)
        except OSError as error:
            raise unreadable(self._ca_bundle, error) from error
        return _SecurePool(parsed.host or "", parsed.port, **options)

    def _timeout(self) -> Any:
        left, settings = max(remaining(), _SHORTEST), self._settings
        if left >= settings.read_timeout + settings.connect_timeout:
            return _DEFAULT_TIMEOUT
        return urllib3.Timeout(connect=min(left, settings.connect_timeout), read=min(left, settings.read_timeout))


def _failed(operation: str, error: Exception) -> EngineUnavailableError:
    """Return the layer's error; codes are the names that botocore has for the same failures."""
    for kind, code in _NOT_SENT.items():
        if isinstance(error, kind):
            return unreached(operation, code, str(error))
    code = "ReadTimeoutError" if isinstance(error, ReadTimeoutError) else "ConnectionClosedError"
    return unanswered(operation, code, f"DynamoDB did not answer ({error})")
