"""The transport on plain sockets: see `dynashard.transport.interface.Transport`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from dynashard import waiting
from dynashard.errors import DynashardError, EngineError
from dynashard.transport.attempts import Attempts
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.deadline import begin, end
from dynashard.transport.direct.blocking import send_once
from dynashard.transport.direct.credentials import Source
from dynashard.transport.direct.endpoint import Endpoint
from dynashard.transport.direct.fallback import sdk_transport
from dynashard.transport.direct.operations import OPERATIONS
from dynashard.transport.direct.sending import Channel, Send, prepare_call, read_answer
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Call, Reader, Resend, Settings, Wire, answers_of, record

if TYPE_CHECKING:
    from dynashard.transport.direct.nonblocking import Sockets
    from dynashard.transport.direct.on_loop import EventLoops
    from dynashard.transport.sdk import SdkTransport


class DirectTransport:
    """Signs and sends requests itself. Retries, deadlines and errors are those of `SdkTransport`.

    Operations outside `OPERATIONS` are sent by botocore, because they have endpoints of their own.

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
        self._settings = settings
        self._seconds = settings.operation_seconds
        self._channel = Channel(endpoint, credentials, settings, self._attempts.runtime)
        self._send: Send = partial(send_once, self._channel)
        self._loops: EventLoops | None = None
        self._closed = False
        self._lock = own_lock(self)
        self._sdk: SdkTransport | None = None

    @property
    def clock_offset(self) -> ClockOffset:
        """How far the clock of this machine is off."""
        return self._channel.clock_offset

    def warm(self) -> None:
        """Read the root certificates now. Cost: no request, about 16 ms of CPU."""
        self._require_open()
        self._channel.dialer.context()

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        return self._call(operation, request, resend)

    def _call(
        self, operation: str, request: Mapping[str, Any], resend: Resend | None, reader: Reader | None = None
    ) -> Wire:
        self._require_open()
        if operation not in OPERATIONS:
            return self._fallback(operation).call(operation, request, resend=resend)
        made = prepare_call(operation, request, resend, reader)
        waiter = waiting.current()
        send = self._send if waiter is None else self._event_loops().sender(waiter)
        token = begin(self._seconds)
        try:
            answer = self._attempts.run(
                lambda attempt: read_answer(operation, send(made), attempt, reader),
                operation,
                made.resend,
            )
        finally:
            end(token)
        record(operation, answer)
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once, on this thread; see `Transport.call_all`."""
        return answers_of(self.try_all(calls, concurrency=concurrency))

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once, on this thread or its event loop; see `Transport.try_all`."""
        self._require_open()
        if len(calls) == 1:
            return [self._tried(calls[0])]
        plain = [call for call in calls if call.operation in OPERATIONS]
        from dynashard.transport.direct.fan_out import FanOut  # noqa: PLC0415 - single requests do without

        with self._sockets() as (channel, sockets):
            answers = iter(FanOut(channel, self._attempts, self._seconds, concurrency, sockets).run(plain))
        if len(plain) == len(calls):
            return list(answers)
        others = [call for call in calls if call.operation not in OPERATIONS]
        more = iter(self._fallback(others[0].operation).try_all(others, concurrency=concurrency))
        return [next(answers if call.operation in OPERATIONS else more) for call in calls]

    def _tried(self, call: Call) -> Wire | DynashardError:
        try:
            return self._call(*call)
        except DynashardError as error:
            return error

    def close(self) -> None:
        """Close sockets; see `Transport.close`."""
        with self._lock:
            self._closed = True
            sdk, self._sdk = self._sdk, None
        self._channel.pool.close()
        if self._loops is not None:
            self._loops.close()
        if sdk is not None:
            sdk.close()

    @contextmanager
    def _sockets(self) -> Iterator[tuple[Channel, "Sockets"]]:
        """Return what a fan-out of the present caller sends on, and waits with."""
        if (waiter := waiting.current()) is not None:
            yield self._event_loops().sockets(waiter)
            return
        from dynashard.transport.direct.nonblocking import SelectedSockets  # noqa: PLC0415 - single requests do without

        with SelectedSockets() as sockets:
            yield self._channel, sockets

    def _event_loops(self) -> "EventLoops":
        if self._loops is None:
            # Only a process with an event loop needs them, and asyncio.
            from dynashard.transport.direct.on_loop import EventLoops  # noqa: PLC0415

            with self._lock:
                self._loops = self._loops or EventLoops(self._channel, self._settings.max_connections)
        return self._loops

    def _fallback(self, operation: str) -> "SdkTransport":
        with self._lock:
            self._require_open()
            if self._sdk is None:
                reason = "the direct transport does not know their endpoint"
                sent = f"Requests of {operation}"
                self._sdk = sdk_transport(self._settings, self._attempts, sent=sent, reason=reason)
            return self._sdk

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError("This transport is closed: connect again.")
