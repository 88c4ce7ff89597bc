"""The execution environments of a function: started on demand, reused, and replaced when they die."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from local import stopping
from local.admission import Admission, FullError
from local.arrivals import Arrivals
from local.environment import (
    Environment,
    FunctionSpec,
    LambdaContext,
    Life,
    NotBegunError,
    PayloadTooLargeError,
    ProcessEndedError,
    event_text,
    work_of,
)
from local.errors import LocalStackError
from local.frames import MAX_UNREAD

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "Environments",
    "FunctionError",
    "FunctionSpec",
    "HandlerError",
    "LambdaContext",
    "OverloadedError",
    "PayloadTooLargeError",
    "event_text",
]

MAX_PAYLOAD_BYTES: Final = 6 * 1024 * 1024
"""Lambda's limit for the event and for the answer of a synchronous call."""
PLACES: Final = 256
"""Default number of calls that may wait for an environment."""
_ENDING: Final = "the local stack is ending"
_ENDED: Final = "the function's process ended"


class FunctionError(Exception):
    """The function failed, or took too long; its log says how."""


class OverloadedError(Exception):
    """All environments are busy and too many calls wait; the function was not called."""


class HandlerError(LocalStackError):
    """A handler cannot be imported; `problem` is its error in one line, and the log has the traceback."""

    def __init__(self, handler: str, problem: str, log: Path) -> None:
        super().__init__(f"{handler} cannot be started ({problem}): see {log}.")
        self.problem = problem


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


@dataclass(slots=True, eq=False)
class Generation:
    """Environments that were started with the same code.

    Attributes:
        idle: those that wait for an event; the last one was used most recently.
        busy: how many serve an event or are being started.
    """

    life: Life = field(default_factory=Life)
    idle: list[Environment] = field(default_factory=list)
    busy: int = 0


class Environments:
    """The execution environments of one function; new ones start on demand, up to a limit, as on Lambda.

    If an environment was killed while idle, another one gets the event. If it dies while it serves an event, that call
    fails with a FunctionError. If a new one cannot import changed code, the call waits for an older one.

    After a change of the code, `prepare` and `replace` start new environments and end the old ones after they answer.

    At most `limit` environments run, and at most `places` calls wait for one. Not many more calls than `processors` run
    at once, unless they take long. The log gets the standard output of all.

    A call that finds an idle environment is sent by the caller's event loop, which also reads the answer. Whatever may
    wait, such as the start of an environment, happens in threads.
    """

    def __init__(
        self, spec: FunctionSpec, *, limit: int, log: Path, places: int = PLACES, processors: int | None = None
    ) -> None:
        self._spec = spec
        self._log = log
        self._ended = False
        self._changed = threading.Condition()
        self._current = Generation()
        self._generations = [self._current]
        self._retiring: list[threading.Thread] = []
        self._admission = Admission[_Call](limit, places, processors)
        self._timer: tuple[asyncio.AbstractEventLoop, asyncio.TimerHandle] | None = None
        """Starts what waits because others have begun a moment ago."""
        self._serving: dict[Environment, tuple[_Call, Generation]] = {}
        """Those whose answer an event loop reads."""
        self._arrivals = Arrivals(self._receive)
        # As many threads as environments: each starts or ends one, or waits for its answer.
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix=spec.name)

    @property
    def handler(self) -> str:
        """What runs, such as `functions.api.handler:handler`."""
        return self._spec.handler

    @property
    def in_use(self) -> bool:
        """Whether there are environments."""
        with self._changed:
            return bool(self._current.idle or self._current.busy)

    def warm(self) -> None:
        """Start the first environment and import the handler.

        Raises:
            HandlerError: the handler cannot be imported.
        """
        # A signal between the two statements would leave a process that nothing ends.
        with stopping.deferred():
            environment = Environment(self._spec, self._log, self._current.life)
            self._current.idle.append(environment)
        if problem := environment.problem():
            self._current.idle.remove(environment)
            environment.end()
            raise HandlerError(self._spec.handler, problem, self._log)

    def prepare(self) -> Generation:
        """Start an environment with the current code while the others serve. Pass the result to `replace` or `discard`.

        Raises:
            HandlerError: the handler cannot be imported; nothing has changed.
        """
        generation = Generation()
        with self._changed:
            if self._ended:
                raise HandlerError(self._spec.handler, _ENDING, self._log)
            # `abandon` ends it with all others.
            self._generations.append(generation)
        environment = Environment(self._spec, self._log, generation.life)
        generation.idle.append(environment)
        if problem := environment.problem():
            self.discard(generation)
            raise HandlerError(self._spec.handler, problem, self._log)
        return generation

    def replace(self, prepared: Generation) -> None:
        """Serve by what was prepared; the others end when they have answered. Returns at once."""
        with self._changed:
            old, self._current = self._current, prepared
            # Calls may wait for an environment.
            self._changed.notify_all()
        thread = threading.Thread(target=self._retire, args=[old], name=f"{self._spec.name}-retire", daemon=True)
        self._retiring = [each for each in self._retiring if each.is_alive()] + [thread]
        thread.start()

    def discard(self, prepared: Generation) -> None:
        """End what was prepared."""
        with self._changed:
            # `abandon` may end it from another thread.
            prepared.life.end()
        for environment in prepared.idle:
            environment.end()
        with self._changed:
            self._generations.remove(prepared)

    def _retire(self, old: Generation) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not old.busy)
            if self._ended:
                return
        self.discard(old)

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
            if self._ended:
                raise FunctionError(_ENDING)
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
        for thread in self._retiring:
            thread.join()
        for generation in self._generations:
            for environment in generation.idle:
                environment.end()
            generation.idle.clear()
        for environment, (call, _) in list(self._serving.items()):
            # A loop that runs ends its environments itself.
            if call.loop.is_closed():
                environment.end()

    def abandon(self) -> None:
        """As `close`, without waiting; may be called from any thread."""
        with self._changed:
            self._ended = True
            for generation in self._generations:
                generation.life.end()
            waiting = self._admission.drain()
            self._changed.notify_all()
        for call in waiting:
            with suppress(RuntimeError):
                # A loop that is closed has no caller that waits.
                call.loop.call_soon_threadsafe(call.finish, FunctionError(_ENDING))

    def _dispatch(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start every call that may run now. The lock is held; `loop` is the event loop of this thread, if it has one.

        Other loops may only be used by their own threads.
        """
        while call := self._admission.next():
            idle = self._current.idle
            if call.answer.cancelled():
                self._admission.done(call)
                continue
            if call.loop is loop and idle and len(call.work) <= MAX_UNREAD:
                self._current.busy += 1
                self._send(call, self._current, idle.pop())
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
            if not self._ended:
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
            self._returned(generation, environment)
            self._done(call, answer, loop)
        return True

    def _replace_ended(
        self, call: _Call, generation: Generation, environment: Environment, error: NotBegunError | ProcessEndedError
    ) -> None:
        """Let another environment serve the call of one that has ended, unless the handler may have been called."""
        environment.end()
        self._returned(generation)
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
            if not self._ended:
                self._dispatch(loop)
        if loop is not None:
            call.finish(outcome)

    def _answer(self, call: _Call) -> bytes:
        while True:
            generation, environment, idle = self._taken()
            try:
                answer = environment.invoke(call.work)
            except (NotBegunError, ProcessEndedError) as error:
                environment.end()
                self._returned(generation)
                if idle and isinstance(error, NotBegunError):
                    # It was killed while it was idle, so the event was not handled: the next one gets it.
                    continue
                raise FunctionError(_ENDED) from None
            self._returned(generation, environment)
            return answer

    def _taken(self) -> tuple[Generation, Environment, bool]:
        """Return an idle environment or a new one, and whether it was idle."""
        with self._changed:
            if self._ended:
                raise FunctionError(_ENDING)
            generation = self._current
            generation.busy += 1
            if generation.idle:
                return generation, generation.idle.pop(), True
        environment = Environment(self._spec, self._log, generation.life)
        problem = environment.problem()
        if not problem:
            return generation, environment, False
        environment.end()
        self._returned(generation)
        return self._waited_for(problem)

    def _waited_for(self, problem: str) -> tuple[Generation, Environment, bool]:
        """Wait for an environment with older code."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._current.idle or not self._current.busy)
            if self._ended:
                raise FunctionError(_ENDING)
            if not self._current.idle:
                raise FunctionError(f"the function cannot be started: {problem}")
            self._current.busy += 1
            return self._current, self._current.idle.pop(), True

    def _returned(self, generation: Generation, environment: Environment | None = None) -> None:
        """Take an environment back that has answered; None if it has ended."""
        with self._changed:
            generation.busy -= 1
            if environment is not None:
                self._serving.pop(environment, None)
                generation.idle.append(environment)
            self._changed.notify_all()
