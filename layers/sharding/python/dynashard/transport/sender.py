"""Signed requests over kept-alive connections: one urllib3 pool for the one endpoint a client has.

Botocore's own sender looks up proxies, pools and certificates for every request; with one endpoint and no proxy all
of that is known beforehand. It hangs on botocore's public `before-send` event, so that retries, signatures and
parsing stay botocore's.
"""

import socket
import ssl
from collections.abc import Mapping
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
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError as PoolConnectTimeoutError
from urllib3.exceptions import (
    HTTPError,
    NewConnectionError,
    ProtocolError,
)
from urllib3.exceptions import ReadTimeoutError as PoolReadTimeoutError
from urllib3.exceptions import SSLError as PoolSSLError

_KEEPALIVE: Final = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


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
        self._pool: urllib3.HTTPConnectionPool
        if parsed.scheme == "https":
            # One context for all connections: the bundle is read once, not once a connection.
            options["ssl_context"] = ssl.create_default_context(cafile=ca_bundle)
            self._pool = urllib3.HTTPSConnectionPool(parsed.host or "", parsed.port, **options)
        else:
            self._pool = urllib3.HTTPConnectionPool(parsed.host or "", parsed.port, **options)

    def __call__(self, request: Any, **_: Any) -> Received | None:
        """Send one request.

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
            )
        except HTTPError as error:
            raise _as_botocore(error, request) from error
        return Received(answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _as_botocore(error: HTTPError, request: Any) -> BotoCoreError:
    """The same failure under the name that botocore's retries know."""
    kinds: tuple[tuple[type[HTTPError], type[BotoCoreError]], ...] = (
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
