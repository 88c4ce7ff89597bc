"""Run code of the layer, which knows no coroutines, so that its waits let the event loop go on.

The code runs in a greenlet of its own. Where it would wait, it hands a future to the coroutine that has started it and
is suspended; the coroutine awaits the future, and switches back with its result. SQLAlchemy's asyncio extension works
the same way. Cancelling the task raises `CancelledError` in the code where it waits, so its `finally` blocks run.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar, cast

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


class _Inside(greenlet):
    """The greenlet of a call, which waits on the event loop of `waiter`."""

    waiter: "LoopWaiter"


async def run(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns; wherever it waits, the event loop goes on.

    It runs in the context of the calling task, so meters and deadlines of the task hold for it.
    """
    inside = _Inside(function)
    inside.waiter = LoopWaiter(asyncio.get_running_loop())
    inside.gr_context = getcurrent().gr_context
    passed = inside.switch(*args, **kwargs)
    while not inside.dead:
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
    return cast("T", passed)


def _find() -> "LoopWaiter | None":
    return getattr(getcurrent(), "waiter", None)


def suspend(future: "asyncio.Future[T]") -> T:
    """Wait for a future of the event loop of the present call; return its result, or raise its error."""
    return cast("T", getcurrent().parent.switch(future))  # type: ignore[union-attr]


class LoopWaiter:
    """Waits on an event loop; see `dynashard.waiting.Waiter`."""

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def wakeup(self) -> "LoopWakeup":
        """Return a new event for the present call to wait for."""
        return LoopWakeup(self.loop)

    def suspend(self, future: "asyncio.Future[T]") -> T:
        """Wait for a future of the event loop; return its result, or raise its error."""
        return suspend(future)

    def begin(self, work: Callable[[], T]) -> "LoopWork[T]":
        """Begin work as a task of the loop."""
        return LoopWork(self.loop, self.loop.create_task(run(work)))

    def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that blocks, done in a thread of the loop's executor, in a copy of this context."""
        context = copy_context()
        future = self.loop.run_in_executor(None, context.run, work)
        try:
            return suspend(future)
        finally:
            if future.done() and not future.cancelled():
                remember_throttles(context.run(throttle_reasons))


class LoopWakeup:
    """Something that happens once; see `dynashard.waiting.Wakeup`."""

    __slots__ = ("_future", "_loop", "_thread")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
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
            return suspend(self._future)
        timer = self._loop.call_later(seconds, self._resolve, False)  # noqa: FBT003 - as above
        try:
            return suspend(self._future)
        finally:
            timer.cancel()

    def _resolve(self, happened: bool) -> None:  # noqa: FBT001 - as above
        if not self._future.done():
            self._future.set_result(happened)


class LoopWork(Generic[T]):
    """A task that was begun beside the caller; see `dynashard.waiting.Work`."""

    __slots__ = ("_loop", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[T]") -> None:
        self._loop = loop
        self._task = task

    def result(self) -> T:
        """Wait for its end; return its result, or raise its error."""
        return suspend(self._task)

    def cancel(self) -> None:
        """End it, if it has not ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._task.cancel)


def require_greenlet() -> None:
    """Raise `ConfigurationError` if greenlet is not installed."""
    if getcurrent is None:
        raise ConfigurationError(
            'AsyncDynashard needs greenlet, which is not installed: pip install "dynashard[async]"'
        )
    waiting.install(_find)
