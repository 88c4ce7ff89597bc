"""Requests to DynamoDB without the layer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import local
from typing import Any
from urllib.parse import urlsplit

from dynashard_checks.schedules.wire import HTTP_OK, EngineSocket

_HTTP_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True)
class RawDynamoDB:
    """Sends requests unchanged, over a connection of each thread."""

    connect: Callable[[], EngineSocket]
    _own: local = field(default_factory=local)

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return its answer. Fails the test with the engine's message if it is refused."""
        status, answer = self._exchange(operation, request)
        assert status == HTTP_OK, answer
        return answer

    def refusal(self, operation: str, **request: Any) -> str:
        """Send a request that is refused, and return the engine's message. Fails the test if it is not refused."""
        status, answer = self._exchange(operation, request)
        assert status == _HTTP_BAD_REQUEST, answer
        return str(answer["message"])

    def _exchange(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not hasattr(self._own, "socket"):
            self._own.socket = self.connect()
        engine: EngineSocket = self._own.socket
        return engine.exchange(operation, request)


def raw_dynamodb(endpoint: str) -> RawDynamoDB:
    """Return a sender to the engine at `endpoint`, an address of HTTP with a port."""
    parts = urlsplit(endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    return RawDynamoDB(partial(EngineSocket, parts.port, parts.hostname))
