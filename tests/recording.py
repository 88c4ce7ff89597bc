"""A transport that keeps all requests and answers, around a real one."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.interface import Call, Resend, Transport, Wire


class RecordingTransport(OneByOne):
    """Implements `Transport`.

    Attributes:
        operations: the operation of each request.
        requests: the requests, in the order of the answers.
        answers: the answers.
        waves: how many requests were sent at a time.
    """

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.clear()
        self._lock = Lock()

    def clear(self) -> None:
        """Remove all requests and answers."""
        self.operations: list[str] = []
        self.requests: list[Mapping[str, Any]] = []
        self.answers: list[Wire] = []
        self.waves: list[int] = []

    @property
    def scanned(self) -> int:
        """How many items were read, before filters."""
        return sum(answer["ScannedCount"] for answer in self.answers)

    @property
    def read_units(self) -> float:
        return float(sum(answer["ConsumedCapacity"]["CapacityUnits"] for answer in self.answers))

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        answer = self.inner.call(operation, request, resend=resend)
        self._keep([operation], [request], [answer])
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        answers = self.inner.call_all(calls, concurrency=concurrency)
        self._keep([call.operation for call in calls], [call.request for call in calls], answers)
        return answers

    def close(self) -> None:
        self.inner.close()

    def _keep(self, operations: list[str], requests: list[Mapping[str, Any]], answers: list[Wire]) -> None:
        with self._lock:
            self.operations += operations
            self.requests += requests
            self.answers += answers
            self.waves.append(len(requests))
