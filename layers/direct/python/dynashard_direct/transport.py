"""The transport on plain sockets: see `dynashard.transport.interface.Transport`."""

from collections.abc import Mapping, Sequence
from typing import Any

from dynashard.errors import DynashardError, EngineError
from dynashard.transport.attempts import Attempts
from dynashard.transport.deadline import within
from dynashard.transport.interface import Call, Resend, Settings, Wire, record
from dynashard_direct.blocking import send_once
from dynashard_direct.credentials import Source
from dynashard_direct.endpoint import Endpoint
from dynashard_direct.fan_out import FanOut
from dynashard_direct.sending import Channel, prepare_call, read_answer


class DirectTransport:
    """Signs and sends requests itself. Retries, deadlines and errors are those of `SdkTransport`.

    Args:
        settings: timeouts, connections and attempts; see `connect`.
        endpoint: where requests go.
        credentials: returns those of each request.
        attempts: how often requests are sent; None follows `settings`.
    """

    def __init__(
        self, settings: Settings, endpoint: Endpoint, credentials: Source, attempts: Attempts | None = None
    ) -> None:
        self._attempts = attempts or Attempts(settings.attempts)
        self._seconds = settings.operation_seconds
        self._channel = Channel(endpoint, credentials, settings, self._attempts.runtime.clock)
        self._closed = False

    def warm(self) -> None:
        """Read the root certificates now. Cost: no request, about 16 ms of CPU."""
        self._require_open()
        self._channel.dialer.context()

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        self._require_open()
        made = prepare_call(operation, request, resend)
        with within(self._seconds):
            answer = self._attempts.run(
                lambda attempt: read_answer(operation, send_once(self._channel, made), attempt), operation, made.resend
            )
        record(operation, answer)
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once, on this thread; see `Transport.call_all`."""
        answers = []
        for answer in self.try_all(calls, concurrency=concurrency):
            if isinstance(answer, DynashardError):
                raise answer
            answers.append(answer)
        return answers

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once, on this thread; see `Transport.try_all`."""
        self._require_open()
        return FanOut(self._channel, self._attempts, self._seconds, concurrency).run(calls)

    def close(self) -> None:
        """Close sockets; see `Transport.close`."""
        self._closed = True
        self._channel.pool.close()

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError("This transport is closed: connect again.")
