"""Work that may take any time, such as asking a provider for credentials, for callers that have a deadline."""

import errno
from collections.abc import Callable
from math import inf
from threading import Lock, Thread
from typing import Generic, TypeVar, cast

from dynashard.transport.deadline import remaining
from dynashard.transport.forks import after_fork
from dynashard.waiting import Wakeup, wakeup

T = TypeVar("T")


class _Running(Generic[T]):
    """Work under way, those that wait for it, and how it ended."""

    def __init__(self) -> None:
        self.waiting: list[Wakeup] = []
        self.ended = False
        self.result: T | None = None
        self.error: BaseException | None = None


class Lookup(Generic[T]):
    """Does its work in a thread of its own, once at a time for all callers. Safe to share between threads."""

    def __init__(self, work: Callable[[], T], what: str) -> None:
        self._work = work
        self._what = what
        self._begin()
        after_fork(self, Lookup._begin)

    def _begin(self) -> None:
        """Begin with nothing under way: a thread of the process from which this one was forked is not here."""
        self._lock = Lock()
        self._running: _Running[T] | None = None

    def result(self) -> T:
        """Return the result of the work that is under way, or that begins now; raises what the work raises.

        Raises `TimeoutError` at the caller's deadline, after which the work goes on for the callers after it, and
        `OSError` if no thread can be started.
        """
        with self._lock:
            running = self._under_way()
            ended = wakeup()
            running.waiting.append(ended)
        left = remaining()
        if not ended.wait(None if left == inf else max(0.0, left)) and not running.ended:
            raise TimeoutError(f"{self._what} did not arrive by the operation's deadline")
        if running.error is not None:
            raise running.error
        return cast("T", running.result)

    def begin(self) -> None:
        """Begin the work if it is not under way, and do not wait for it. Raises `OSError` as `result`."""
        with self._lock:
            self._under_way()

    def _under_way(self) -> _Running[T]:
        if self._running is None:
            running = _Running[T]()
            try:
                Thread(target=self._do, args=(running,), name="dynashard-lookup", daemon=True).start()
            except RuntimeError as error:
                raise OSError(errno.EAGAIN, f"{self._what} cannot be looked up: {error}") from error
            self._running = running
        return self._running

    def _do(self, running: _Running[T]) -> None:
        try:
            running.result = self._work()
        except BaseException as error:  # noqa: BLE001 - raised in the threads that wait
            running.error = error
        with self._lock:
            running.ended = True
            if self._running is running:
                self._running = None
        for each in running.waiting:
            each.set()
