"""How a call waits: it blocks its thread, or it lets the event loop of an `AsyncDynashard` go on with other tasks.

The layer is written once. Whatever waits, for bytes, a time, a lock or a thread, asks `current()` which of the two it
is. Under an event loop the call runs in a greenlet, a coroutine with a stack of its own: waiting switches to the loop,
and the loop switches back. `dynashard.awaiting` installs that; without it every call blocks.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

T = TypeVar("T")
R = TypeVar("R")
Result_co = TypeVar("Result_co", covariant=True)


class Wakeup(Protocol):
    """Something that happens once."""

    def set(self) -> None:
        """Say that it has happened. From any thread."""
        ...

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has happened, at most so many seconds; return whether it has."""
        ...


class Work(Protocol[Result_co]):
    """Work that was begun beside the caller."""

    def result(self) -> Result_co:
        """Wait for its end; return its result, or raise its error."""
        ...

    def cancel(self) -> None:
        """End it, if it has not ended. From any thread."""
        ...


class Waiter(Protocol):
    """The event loop on which the present call waits."""

    @property
    def loop(self) -> "AbstractEventLoop":
        """The event loop."""
        ...

    def wakeup(self) -> Wakeup:
        """Return a new event for the present call to wait for."""
        ...

    def suspend(self, future: "Future[T]") -> T:
        """Wait for a future of the event loop; return its result, or raise its error."""
        ...

    def begin(self, work: Callable[[], T]) -> Work[T]:
        """Begin work as a task of the loop, in a copy of the present context."""
        ...

    def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that blocks, done in a thread of the loop's executor."""
        ...


def _blocks() -> Waiter | None:
    """Return the event loop on which the present call waits; None if it blocks its thread."""
    return None


current: Callable[[], Waiter | None] = _blocks
"""Returns the event loop on which the present call waits; None if it blocks its thread."""


def install(find: Callable[[], Waiter | None]) -> None:
    """Say how `current` is found from now on."""
    global current  # noqa: PLW0603 - a process that has no event loop asks nobody
    current = find


def sleep(seconds: float) -> None:
    """Wait so many seconds."""
    waiter = current()
    if waiter is None:
        time.sleep(seconds)
    else:
        waiter.wakeup().wait(seconds)


def wakeup() -> Wakeup:
    """Return a new event for the present call to wait for."""
    waiter = current()
    return Event() if waiter is None else waiter.wakeup()


def in_thread(work: Callable[[], T]) -> T:
    """Return the result of work that blocks its thread. Under an event loop it is done in another thread."""
    waiter = current()
    return work() if waiter is None else waiter.in_thread(work)


def map_tasks(waiter: Waiter, work: Callable[[T], R], members: Sequence[T], concurrency: int) -> list[R]:
    """Return the result of the work for each member, several at a time; raise the first error in their order."""
    left = deque(enumerate(members))
    results: dict[int, R] = {}
    errors: dict[int, Exception] = {}

    def run() -> None:
        while left:
            at, member = left.popleft()
            try:
                results[at] = work(member)
            except Exception as error:  # noqa: BLE001 - raised below, in the call that waits
                errors[at] = error

    begun = [waiter.begin(run) for _ in range(min(concurrency, len(members)))]
    try:
        for each in begun:
            each.result()
    except BaseException:
        for each in begun:
            each.cancel()
        raise
    if errors:
        raise errors[min(errors)]
    return [results[at] for at in range(len(members))]


class Turn:
    """A lock that its holder may keep while it waits: for threads, for tasks of an event loop, and for both at once.

    A task that finds a plain lock taken by another task of its thread would stop both for ever. What a task holds is
    free once its loop is closed.
    """

    __slots__ = ("_held", "_lock", "_loop", "_queue")

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = False
        self._loop: AbstractEventLoop | None = None
        self._queue: deque[tuple[Wakeup, AbstractEventLoop | None]] = deque()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, seconds: float | None = None) -> bool:
        """Take the lock, and return whether it was free within so many seconds; None waits for as long as it takes."""
        end = None if seconds is None else time.monotonic() + seconds
        while (later := self._taken()) is not None:
            happened = False
            try:
                happened = later.wait(None if end is None else max(0.0, end - time.monotonic()))
            finally:
                if not happened:
                    self._leave(later)
            if not happened:
                return False
        return True

    def release(self) -> None:
        """Give the lock back, and wake the first of those that wait."""
        with self._lock:
            self._held = False
            self._wake()

    def _taken(self) -> Wakeup | None:
        """Take the lock, or return what happens when it is free again."""
        waiter = current()
        loop = None if waiter is None else waiter.loop
        with self._lock:
            if not self._held or (self._loop is not None and self._loop.is_closed()):
                self._held, self._loop = True, loop
                return None
            later = wakeup()
            self._queue.append((later, loop))
            return later

    def _leave(self, later: Wakeup) -> None:
        """Give up waiting. What was woken already wakes the next one instead."""
        with self._lock:
            left = [each for each in self._queue if each[0] is not later]
            if len(left) < len(self._queue):
                self._queue = deque(left)
            elif not self._held:
                self._wake()

    def _wake(self) -> None:
        while self._queue:
            later, loop = self._queue.popleft()
            if loop is None or not loop.is_closed():
                later.set()
                return
