"""The execution environments of a function: started on demand, kept for the next event, replaced when they die."""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from local import stopping
from local.admission import Admission, FullError
from local.environment import (
    Environment,
    FunctionSpec,
    LambdaContext,
    Life,
    NotBegunError,
    ProcessEndedError,
)
from local.errors import LocalStackError

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "Environments",
    "FunctionError",
    "FunctionSpec",
    "LambdaContext",
    "OverloadedError",
    "PayloadTooLargeError",
]

MAX_PAYLOAD_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit for the event and for the answer of a synchronous call."""
PLACES: Final = 256
"""Calls that may wait for an environment, if nobody says otherwise."""
_ENDING: Final = "the local stack is ending"


class FunctionError(Exception):
    """The function failed, or took too long; its log says how."""


class OverloadedError(Exception):
    """All environments are busy and too many calls wait; the function was not called."""


class PayloadTooLargeError(Exception):
    """The event is larger than Lambda takes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    payload: bytes
    request_id: str
    answer: "Future[bytes]" = field(default_factory=Future)


class Environments:
    """The execution environments of one function; new ones start on demand, up to a limit, as on Lambda.

    If an environment was killed while it was idle, the event goes to another one, and no call fails. If it dies while
    it serves an event, only that call fails, with a FunctionError.

    Args:
        spec: the function.
        limit: how many environments may run.
        log: where the function's standard output goes.
        places: how many calls may wait for one.
    """

    def __init__(self, spec: FunctionSpec, *, limit: int, log: Path, places: int = PLACES) -> None:
        self._spec = spec
        self._log = log
        self._life = Life()
        self._lock = threading.Lock()
        self._idle: list[Environment] = []
        self._admission = Admission[_Call](limit, places)
        # As many threads as environments: each waits for the answer of one.
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix=spec.name)

    def warm(self) -> None:
        """Start the first environment and import the handler.

        Raises:
            LocalStackError: the handler cannot be imported; the log has the traceback.
        """
        # If a signal interrupted this, the started process would be lost and never awaited.
        with stopping.deferred():
            environment = Environment(self._spec, self._log, self._life)
            self._idle.append(environment)
        try:
            problem = environment.load()
        except (NotBegunError, ProcessEndedError):
            self._idle.remove(environment)
            environment.bury()
            problem = "its process ended"
        if problem:
            raise LocalStackError(f"{self._spec.handler} cannot be started ({problem}): see {self._log}.")

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        """What the handler returns for an event, through JSON as on Lambda.

        Args:
            event: the event.
            request_id: the id that the function's context has.
            expensive: whether the call waits longer, and is refused earlier, than others.

        Raises:
            PayloadTooLargeError: the event is over 6 MB; the function was not called.
            OverloadedError: too many calls wait already; the function was not called.
            FunctionError: the handler raised, ended its process, took too long, or answered more than 6 MB.
        """
        payload = event_text(event)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLargeError
        call = _Call(payload, request_id)
        with self._lock:
            if self._life.ended:
                raise FunctionError(_ENDING)
            try:
                self._admission.join(call, expensive=expensive)
            except FullError as error:
                raise OverloadedError from error
            self._dispatch()
        answer = await asyncio.wrap_future(call.answer)
        if not answer:
            raise FunctionError("the function raised an error")
        if len(answer) > MAX_PAYLOAD_BYTES:
            raise FunctionError("the function's answer is over 6 MB")
        return orjson.loads(answer)

    def close(self) -> None:
        """End all environments, whatever they are doing; their callers get a FunctionError."""
        self.abandon()
        self._threads.shutdown(wait=True)
        for environment in self._idle:
            environment.bury()
        self._idle.clear()

    def abandon(self) -> None:
        """The same without waiting; may be called from any thread."""
        with self._lock:
            self._life.end()
            waiting = self._admission.drain()
        for call in waiting:
            if call.answer.set_running_or_notify_cancel():
                call.answer.set_exception(FunctionError(_ENDING))

    def _dispatch(self) -> None:
        """Start every call that may run now. The lock is held."""
        while found := self._admission.next():
            call, expensive = found
            self._threads.submit(self._run, call, expensive)

    def _run(self, call: _Call, expensive: bool) -> None:  # noqa: FBT001 - submitted by position
        wanted = call.answer.set_running_or_notify_cancel()
        answer: bytes | Exception = b""
        try:
            answer = self._answer(call) if wanted else b""
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller must not wait for ever
            answer = error
        with self._lock:
            self._admission.done(expensive=expensive)
            if not self._life.ended:
                self._dispatch()
        if not wanted:
            return
        if isinstance(answer, Exception):
            call.answer.set_exception(answer)
        else:
            call.answer.set_result(answer)

    def _answer(self, call: _Call) -> bytes:
        while True:
            environment, idle = self._taken()
            try:
                answer = environment.invoke(call.payload, call.request_id)
            except (NotBegunError, ProcessEndedError) as error:
                environment.bury()
                if idle and isinstance(error, NotBegunError):
                    # It was killed while it was idle: the event was not worked on, so the next one gets it.
                    continue
                raise FunctionError("the function's process ended") from None
            with self._lock:
                self._idle.append(environment)
            return answer

    def _taken(self) -> tuple[Environment, bool]:
        """An idle environment, the one that was used last, or a new one; and whether it was idle."""
        with self._lock:
            if self._life.ended:
                raise FunctionError(_ENDING)
            if self._idle:
                return self._idle.pop(), True
        return Environment(self._spec, self._log, self._life), False


def event_text(event: Mapping[str, Any]) -> bytes:
    """An event as JSON.

    Raises:
        PayloadTooLargeError: it is nested deeper than any JSON library here writes.
    """
    try:
        return orjson.dumps(event)
    except TypeError:
        # It writes 254 levels. Lambda takes deeper events, and the functions refuse them by themselves.
        try:
            return json.dumps(event).encode()
        except RecursionError as error:
            raise PayloadTooLargeError from error
