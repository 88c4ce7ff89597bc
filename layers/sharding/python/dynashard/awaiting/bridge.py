"""Run code of the layer, which knows no coroutines, so that its waits let the event loop go on.

The code runs in a greenlet of its own. Where it would wait, it hands a future to the coroutine that has started it and
is suspended; the coroutine awaits the future, and switches back with its result. SQLAlchemy's asyncio extension works
the same way. Cancelling the task raises `CancelledError` in the code where it waits, so its `finally` blocks run.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import get_ident, local
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

from dynashard import waiting
from dynashard.errors import ConfigurationError
from dynashard.transport.interface import remember_throttles, throttle_reasons

try:
    from greenlet import getcurrent, greenlet
except ModuleNotFoundError:  # `require_greenlet` says so to those who need it
    if not TYPE_CHECKING:
        greenlet, getcurrent = object, None

P = ParamSpec("P")
T = TypeVar("T")


_IDLE: Final = 64
"""Greenlets of a thread that are kept for its next calls. A new one costs ten times what switching costs."""


class _Inside(greenlet):
    """The greenlet of a call, which waits on the event loop of `waiter`; afterwards that of another call.

    Attributes:
        call: what it runs next.
        result: what that returned, once the greenlet switches back with itself.
        error: what that raised.
    """

    waiter: "LoopWaiter"
    call: Callable[[], Any] | None = None
    result: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        """Run one call after another; the greenlet is suspended in between."""
        while True:
            call, self.call = self.call, None
            assert call is not None  # noqa: S101 - it is set before each switch
            try:
                self.result = call()
            except BaseException as error:  # noqa: BLE001 - raised by the coroutine of the call
                self.error = error
            del call
            self.parent.switch(self)


class _Kept(local):
    """What a thread keeps for its next calls: greenlets that run nothing now, and what waits on its last event loop."""

    def __init__(self) -> None:
        self.idle: list[_Inside] = []
        self.waiter: LoopWaiter | None = None


_KEPT: Final = _Kept()


async def run(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns; wherever it waits, the event loop goes on.

    It runs in the context of the calling task, so meters and deadlines of the task hold for it.
    """
    kept, here, loop = _KEPT, getcurrent(), asyncio.get_running_loop()
    idle, waiter = kept.idle, kept.waiter
    if waiter is None or waiter.loop is not loop:
        kept.waiter = waiter = LoopWaiter(loop)
    inside = idle.pop() if idle else _Inside()
    inside.parent, inside.waiter, inside.gr_context = here, waiter, here.gr_context
    inside.call = partial(function, *args, **kwargs)
    passed: Any = inside.switch()
    while passed is not inside:
        try:
            value = await passed
        except GeneratorExit:
            # The coroutine is closed and cannot await any more, so the code ends without waiting for anything.
            inside.throw()
            raise
        except BaseException as error:  # noqa: BLE001 - raised in the code that waits
            passed = inside.throw(error)
        else:
            passed = inside.switch(value)
    result: T = inside.result
    failure, inside.error = inside.error, None
    inside.result = inside.gr_context = None
    if len(idle) < _IDLE:
        idle.append(inside)
    if failure is None:
        return result
    try:
        raise failure
    finally:
        del failure  # Its traceback leads here: only a search for cycles would free it.


def _find() -> "LoopWaiter | None":
    return getattr(getcurrent(), "waiter", None)


class LoopWaiter:
    """Waits on an event loop; see `dynashard.waiting.Waiter`."""

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def wakeup(self) -> "LoopWakeup":
        """Return a new event for the present call to wait for."""
        return LoopWakeup(self)

    def suspend(self, future: "asyncio.Future[T]") -> T:
        """Wait for a future of the event loop; return its result, or raise its error."""
        result: T = getcurrent().parent.switch(future)
        return result

    def begin(self, work: Callable[[], T]) -> "LoopWork[T]":
        """Begin work as a task of the loop."""
        return LoopWork(self, self.loop.create_task(run(work)))

    def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that blocks, done in a thread of the loop's executor, in a copy of this context."""
        context = copy_context()
        future = self.loop.run_in_executor(None, context.run, work)
        try:
            return self.suspend(future)
        finally:
            if future.done() and not future.cancelled():
                # What the thread has met is in its copy of the context only, and growth asks in this one.
                remember_throttles(context.run(throttle_reasons))


class LoopWakeup:
    """Something that happens once; see `dynashard.waiting.Wakeup`."""

    __slots__ = ("_future", "_loop", "_thread", "_waiter")

    def __init__(self, waiter: LoopWaiter) -> None:
        self._waiter = waiter
        self._loop = loop = waiter.loop
        self._thread = get_ident()
        self._future: asyncio.Future[bool] = loop.create_future()

    def set(self) -> None:
        """Say that it has happened."""
        if get_ident() == self._thread:
            self._resolve(happened=True)
            return
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, True)  # noqa: FBT003 - passed on by position

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has happened, at most so many seconds; return whether it has."""
        if seconds is None:
            return self._waiter.suspend(self._future)
        timer = self._loop.call_later(seconds, self._resolve, False)  # noqa: FBT003 - as above
        try:
            return self._waiter.suspend(self._future)
        finally:
            timer.cancel()

    def _resolve(self, happened: bool) -> None:  # noqa: FBT001 - as above
        if not self._future.done():
            self._future.set_result(happened)


class LoopWork(Generic[T]):
    """A task that was begun beside the caller; see `dynashard.waiting.Work`."""

    __slots__ = ("_task", "_waiter")

    def __init__(self, waiter: LoopWaiter, task: "asyncio.Task[T]") -> None:
        self._waiter = waiter
        self._task = task

    def result(self) -> T:
        """Wait for its end; return its result, or raise its error."""
        return self._waiter.suspend(self._task)

    def cancel(self) -> None:
        """End it, if it has not ended."""
        with suppress(RuntimeError):
            self._waiter.loop.call_soon_threadsafe(self._task.cancel)


def require_greenlet() -> None:
    """Raise `ConfigurationError` if greenlet is not installed."""
    if getcurrent is None:
        raise ConfigurationError(
            'AsyncDynashard needs greenlet, which is not installed: pip install "dynashard[async]"'
        )
    waiting.install(_find)
