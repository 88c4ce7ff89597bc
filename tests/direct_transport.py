"""The layer's transport without botocore, which takes most of the processor time of a test with many requests.

Retries, deadlines, concurrency, meters and errors are those of `SdkTransport`. Only signing and HTTP are replaced: an
engine on this machine checks no signature. What botocore does is tested in `tests/{unit,engine}/transport`, and used by
the tests of the API, of the clients, of the command line and of whole stacks.
"""

from threading import local
from typing import Any
from urllib.parse import urlsplit

from dynashard.transport import Transport, connect
from dynashard.transport.client import Opened
from dynashard.transport.interface import Settings, Wire
from dynashard.transport.sdk import SdkTransport
from tests.resharding.wire import HTTP_OK, EngineSocket, error_of


class DirectTransport(SdkTransport):
    """Sends requests over a socket of each thread."""

    def __init__(self, port: int) -> None:
        super().__init__(Settings())
        self._port = port
        self._own = local()

    def _open(self) -> Opened:
        """Return no client: nothing asks for it."""
        return Opened(None, None)

    def _method(self, operation: str) -> Any:
        return self._methods.setdefault(operation, lambda **request: self._exchange(operation, request))

    def _exchange(self, operation: str, request: Wire) -> Wire:
        if not hasattr(self._own, "socket"):
            self._own.socket = EngineSocket(self._port)
        engine: EngineSocket = self._own.socket
        status, answer = engine.exchange(operation, request)
        answer["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": {}}
        if status != HTTP_OK:
            code, message = error_of(status, answer)
            answer["Error"] = {"Code": code, "Message": message}
        return answer


def direct_transport(endpoint: str) -> Transport:
    """Return a transport to an engine: a direct one if it is on this machine."""
    parts = urlsplit(endpoint)
    if (parts.scheme, parts.hostname) == ("http", "127.0.0.1") and parts.port:
        return DirectTransport(parts.port)
    return connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
