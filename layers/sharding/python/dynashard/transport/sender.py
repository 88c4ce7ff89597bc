"""Signed requests over kept-alive connections: one urllib3 pool for the one endpoint a client has.

Botocore's own sender looks up proxies, pools and certificates for every request; with one endpoint and no proxy all
of that is known beforehand. It hangs on botocore's public `before-send` event, so that signatures and parsing stay
botocore's.

A kept connection that died while it was idle is replaced before a byte of a request is written to it, so that nothing
is lost: it is looked at, because a close by the other side shows, and it is not used beyond an age, because a reset
that a frozen Lambda slept through does not show. So the commonest fault leaves no doubt about what was executed.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import urllib3
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError as PoolConnectTimeoutError
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError
from urllib3.exceptions import ReadTimeoutError as PoolReadTimeoutError
from urllib3.exceptions import SSLError as PoolSSLError
from urllib3.util.timeout import _DEFAULT_TIMEOUT

from dynashard.transport.deadline import remaining

MAX_IDLE_SECONDS: Final = 30.0
"""A connection that was idle for longer is replaced: its other end may be gone without a sign."""
_SHORTEST: Final = 0.001
"""A timeout of zero would be refused."""
_POOLS_OWN: Final = _DEFAULT_TIMEOUT
_KEEPALIVE: Final = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class HandshakeError(SSLError):  # type: ignore[misc]
    """A connection was not made: no byte of a request was written."""


class _HandshakeFailedError(HTTPError):
    """The same, before botocore's name for it."""


class _Aged:
    """What a kept connection knows about its age. The wall clock counts: a frozen Lambda's monotonic clock does not."""

    clock: Callable[[], float] = staticmethod(time.time)
    used = 0.0

    def connect(self) -> None:
        try:
            super().connect()  # type: ignore[misc]
        except OSError as error:
            # Not urllib3's own errors, which say already that there is no connection.
            raise _HandshakeFailedError(str(error)) from error
        self.used = self.clock()

    def getresponse(self) -> Any:
        response = super().getresponse()  # type: ignore[misc]
        self.used = self.clock()
        return response

    @property
    def is_connected(self) -> bool:
        """Asked before a kept connection is used again; if not, it is made anew."""
        if not 0 <= self.clock() - self.used <= MAX_IDLE_SECONDS:
            return False
        connected: bool = super().is_connected  # type: ignore[misc]
        return connected


class _Plain(_Aged, HTTPConnection):
    """A connection to a local engine."""


class _Secure(_Aged, HTTPSConnection):
    """A connection to DynamoDB."""


class Received:
    """An answer as botocore's parsing and retries look at it."""

    __slots__ = ("content", "headers", "raw", "status_code")

    def __init__(self, status_code: int, headers: Mapping[str, str], content: bytes) -> None:
        self.status_code = status_code
        self.headers = headers
        self.content = content
        self.raw = None


class PooledSender:
    """A handler of `before-send`: sends the request and returns its answer. Safe to share between threads.

    Args:
        url: the endpoint. Requests to any other are left to botocore.
        ca_bundle: file of the certificates that the endpoint's must descend from.
        connect_timeout: in seconds.
        read_timeout: in seconds.
        max_connections: connections kept open.
    """

    def __init__(
        self, url: str, *, ca_bundle: str, connect_timeout: float, read_timeout: float, max_connections: int
    ) -> None:
        parsed = urllib3.util.parse_url(url)
        options: dict[str, Any] = {
            "timeout": urllib3.Timeout(connect=connect_timeout, read=read_timeout),
            "maxsize": max_connections,
            "socket_options": [*HTTPConnection.default_socket_options, _KEEPALIVE],
        }
        self._url = url.rstrip("/") + "/"
        self._target = parsed.path or "/"
        self._connect_timeout, self._read_timeout = connect_timeout, read_timeout
        self._pool: urllib3.HTTPConnectionPool
        if parsed.scheme == "https":
            # One context for all connections: the bundle is read once, not once a connection.
            options["ssl_context"] = ssl.create_default_context(cafile=ca_bundle)
            self._pool = urllib3.HTTPSConnectionPool(parsed.host or "", parsed.port, **options)
        else:
            self._pool = urllib3.HTTPConnectionPool(parsed.host or "", parsed.port, **options)
        self._pool.ConnectionCls = _Secure if parsed.scheme == "https" else _Plain

    def __call__(self, request: Any, **_: Any) -> Received | None:
        """Send one request, and wait for its answer no longer than the operation's deadline.

        Raises:
            BotoCoreError: the subclass that says why, as botocore's retries know it.
        """
        url = request.url
        if url != self._url:
            return None
        try:
            answer = self._pool.urlopen(
                request.method,
                self._target,
                body=request.body,
                headers=dict(request.headers.items()),
                retries=False,
                assert_same_host=False,
                decode_content=False,
                timeout=self._timeout(),
            )
        except HTTPError as error:
            raise _as_botocore(error, request) from error
        return Received(answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _timeout(self) -> Any:
        left = remaining()
        if left >= self._read_timeout + self._connect_timeout:
            return _POOLS_OWN
        left = max(left, _SHORTEST)
        return urllib3.Timeout(connect=min(left, self._connect_timeout), read=min(left, self._read_timeout))


def _as_botocore(error: HTTPError, request: Any) -> BotoCoreError:
    """The same failure under the name that botocore's retries know."""
    kinds: tuple[tuple[type[HTTPError], type[BotoCoreError]], ...] = (
        (_HandshakeFailedError, HandshakeError),
        (PoolSSLError, SSLError),
        (NewConnectionError, EndpointConnectionError),
        (PoolConnectTimeoutError, ConnectTimeoutError),
        (PoolReadTimeoutError, ReadTimeoutError),
        (ProtocolError, ConnectionClosedError),
    )
    for kind, named in kinds:
        if isinstance(error, kind):
            return named(error=error, request=request, endpoint_url=request.url)
    return HTTPClientError(error=error)
