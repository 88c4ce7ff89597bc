"""The calls of a function: each is served by an execution environment, or waits for one."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from dynashard_local.functions.admission import Admission, FullError
from dynashard_local.functions.arrivals import Arrivals
from dynashard_local.functions.environment import (
    Environment,
    FunctionSpec,
    LambdaContext,
    NotBegunError,
    PayloadTooLargeError,
    ProcessEndedError,
    event_text,
    work_of,
)
from dynashard_local.functions.frames import MAX_UNREAD
from dynashard_local.functions.generations import ENDING, FunctionError, Generation, Generations

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "FunctionError",
    "FunctionSpec",
    "LambdaContext",
    "LocalFunction",
    "OverloadedError",
    "PayloadTooLargeError",
    "event_text",
]

MAX_PAYLOAD_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit for the event and for the answer of a synchronous call."""
PLACES: Final = 256
"""Default number of calls that may wait for an environment."""
_ENDED: Final = "the function's process ended"


class OverloadedError(Exception):
    """All environments are busy and too many calls wait; the function was not called."""


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """An event whose caller waits in an event loop for `answer`."""

    work: bytes
    expensive: bool
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[bytes]"

    def finish(self, outcome: bytes | Exception) -> None:
        """Give the caller the answer or the error, on the thread of its loop."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class LocalFunction:
    """The execution environments of one function; new ones start on demand, up to a limit, as on Lambda.

    If an environment was killed while idle, another one gets the event. If it dies while it serves an event, that call
    fails with a FunctionError. `generations` starts them, and replaces them after a change of the code.

    At most `limit` environments run, and at most `places` calls wait for one. Not many more calls than `processors` run
    at once, unless they take long. The log gets the standard output of all.

    A call that finds an idle environment is sent by the caller's event loop, which also reads the answer. Whatever may
    wait, such as the start of an environment, happens in threads.
    """

    def __init__(
        self, spec: FunctionSpec, *, limit: int, log: Path, places: int = PLACES, processors: int | None = None
    ) -> None:
        self.generations = Generations(spec, log)
        self._changed = self.generations.changed
        self._admission = Admission[_Call](limit, places, processors)
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        """Starts what waits because others have begun a moment ago."""
        self._serving: dict[Environment, tuple[_Call, Generation]] = {}
        """Those whose answer an event loop reads."""
        self._arrivals = Arrivals(self._receive)
        # As many threads as environments: each starts or ends one, or waits for its answer.
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix=spec.name)

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        """Return what the handler returns for an event, through JSON as on Lambda.

        Expensive calls wait longer, and are refused earlier, than others.

        Raises:
            PayloadTooLargeError: the event is over 6 MB; the function was not called.
            OverloadedError: too many calls wait already; the function was not called.
            FunctionError: the handler raised, ended its process, took too long, or answered more than 6 MB.
        """
        payload = event_text(event)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLargeError
        loop = asyncio.get_running_loop()
        call = _Call(work_of(payload, request_id), expensive, loop, loop.create_future())
        with self._changed:
            if self.generations.ended:
                raise FunctionError(ENDING)
            try:
                self._admission.join(call, expensive=expensive)
            except FullError as error:
                raise OverloadedError from error
            self._dispatch(loop)
        answer = await call.answer
        if not answer:
            raise FunctionError("the function raised an error")
        if len(answer) > MAX_PAYLOAD_BYTES:
            raise FunctionError("the function's answer is over 6 MB")
        return orjson.loads(answer)

    def close(self) -> None:
        """End all environments at once; their callers get a FunctionError."""
        self.abandon()
        self._threads.shutdown(wait=True)
        self.generations.close()
        for environment, (call, _) in list(self._serving.items()):
            # A loop that runs ends its environments itself.
            if call.loop.is_closed():
                environment.end()

    def abandon(self) -> None:
        """As `close`, without waiting; may be called from any thread."""
        with self._changed:
            self.generations.abandon()
            waiting = self._admission.drain()
        for call in waiting:
            with suppress(RuntimeError):
                # A loop that is closed has no caller that waits.
                call.loop.call_soon_threadsafe(call.finish, FunctionError(ENDING))

    def _dispatch(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start every call that may run now. The lock is held; `loop` is the event loop of this thread, if it has one.

        Other loops may only be used by their own threads.
        """
        while call := self._admission.next():
            if call.answer.cancelled():
                self._admission.done(call)
                continue
            small = len(call.work) <= MAX_UNREAD
            if call.loop is loop and small and (taken := self.generations.take_idle()):
                self._send(call, *taken)
            else:
                self._threads.submit(self._run, call)
        if (
            loop is not None
            and (pause := self._admission.pause)
            and (self._timer is None or self._timer[0] is not loop)
        ):
            self._timer = loop, loop.call_later(pause, self._dispatch_later, loop)

    def _dispatch_later(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changed:
            self._timer = None
            if not self.generations.ended:
                self._dispatch(loop)

    def _send(self, call: _Call, generation: Generation, environment: Environment) -> None:
        """Let an idle environment serve a call, on the thread of the call's loop. The lock is held."""
        try:
            environment.send(call.work)
        except NotBegunError as error:
            self._threads.submit(self._replace_ended, call, generation, environment, error)
            return
        self._serving[environment] = call, generation
        self._arrivals.watch(environment, call.loop)

    def _receive(self, environment: Environment, loop: asyncio.AbstractEventLoop) -> bool:
        """Read what has arrived of an answer for this loop. Return False if none is expected."""
        serving = self._serving.get(environment)
        if serving is None or serving[0].loop is not loop:
            return False
        call, generation = serving
        try:
            answer = environment.receive()
        except (NotBegunError, ProcessEndedError) as error:
            with self._changed:
                del self._serving[environment]
            try:
                self._threads.submit(self._replace_ended, call, generation, environment, error)
            except RuntimeError:
                # The threads have ended, because the local stack is ending.
                self._replace_ended(call, generation, environment, error)
            return False
        if answer is not None:
            with self._changed:
                del self._serving[environment]
                self.generations.take_back(generation, environment)
            self._done(call, answer, loop)
        return True

    def _replace_ended(
        self, call: _Call, generation: Generation, environment: Environment, error: NotBegunError | ProcessEndedError
    ) -> None:
        """Let another environment serve the call of one that has ended, unless the handler may have been called."""
        environment.end()
        self.generations.take_back(generation)
        self._run(call, FunctionError(_ENDED) if isinstance(error, ProcessEndedError) else None)

    def _run(self, call: _Call, outcome: bytes | Exception | None = None) -> None:
        """Serve a call, unless its outcome is known, in a thread."""
        if outcome is None:
            try:
                outcome = self._answer(call)
            except Exception as error:  # noqa: BLE001 - after any error the caller must get an answer
                outcome = error
        try:
            call.loop.call_soon_threadsafe(self._done, call, outcome, call.loop)
        except RuntimeError:
            # The loop is closed, and nobody waits for the answer.
            self._done(call, outcome, None)

    def _done(self, call: _Call, outcome: bytes | Exception, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._changed:
            self._admission.done(call)
            if not self.generations.ended:
                self._dispatch(loop)
        if loop is not None:
            call.finish(outcome)

    def _answer(self, call: _Call) -> bytes:
        while True:
            generation, environment, idle = self.generations.take()
            try:
                answer = environment.invoke(call.work)
            except (NotBegunError, ProcessEndedError) as error:
                environment.end()
                self.generations.take_back(generation)
                if idle and isinstance(error, NotBegunError):
                    # It was killed while it was idle, so the event was not handled: the next one gets it.
                    continue
                raise FunctionError(_ENDED) from None
            self.generations.take_back(generation, environment)
            return answer
