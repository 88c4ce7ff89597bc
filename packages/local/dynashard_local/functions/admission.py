"""Admission control: which call gets an execution environment next, and which is refused, while all are busy.

Cheap calls go first, and expensive calls never use the last environment, so a GET does not wait for a listing that
takes seconds. The queue is bounded. Expensive calls are refused when a quarter of it is taken, cheap calls only when it
is full.

More calls at once than there are processors do not end sooner. They take longer, because each environment finds the
processor's caches full of what the others have used. So another call begins only if one of the last has ended, or has
run so long that it probably waits for something else.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

C = TypeVar("C")

EXPENSIVE_SHARE: Final = 4
"""Expensive calls are accepted while less than this fraction (1 / 4) of the places is taken."""
SLOW_SECONDS: Final = 0.05
"""A call that has run for so long does not keep another one from beginning."""


class FullError(Exception):
    """Too many calls wait already; the caller may try again after a moment."""


class Admission(Generic[C]):
    """The calls of one function: at most `limit` run, and `places` wait. Not safe to share between threads.

    Of those that run, at most `processors` have begun in the last `SLOW_SECONDS`. By default that is not limited.
    """

    def __init__(
        self, limit: int, places: int, processors: int | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._places = places
        self._processors = processors or limit
        self._clock = clock
        self._waiting: dict[bool, deque[C]] = {False: deque(), True: deque()}
        self._running: dict[C, tuple[bool, float]] = {}
        """Whether each is expensive, and when it began, in this order."""

    def join(self, call: C, *, expensive: bool) -> None:
        """Put a call into the queue. Raises `FullError` if the queue has no place for it."""
        free = self._limit - len(self._running)
        most = self._places // EXPENSIVE_SHARE if expensive else self._places
        if self._waiting_calls >= most + free:
            raise FullError
        self._waiting[expensive].append(call)

    def next(self) -> C | None:
        """Return the call that may run now; None if there is none. It runs until `done`."""
        if not self._waiting_calls or self._pause() != 0:
            return None
        for expensive in (False, True):
            if self._waiting[expensive] and not (expensive and self._most_expensive_run):
                call = self._waiting[expensive].popleft()
                self._running[call] = expensive, self._clock()
                return call
        return None

    @property
    def pause(self) -> float | None:
        """The seconds after which a call may run even if none ends before; None if it would not."""
        return self._pause() if self._waiting_calls else None

    def done(self, call: C) -> None:
        """A call has ended."""
        del self._running[call]

    def drain(self) -> list[C]:
        """Remove and return all calls that wait."""
        left = [*self._waiting[False], *self._waiting[True]]
        for each in self._waiting.values():
            each.clear()
        return left

    def _pause(self) -> float | None:
        if len(self._running) >= self._limit:
            return None
        if len(self._running) < self._processors:
            return 0
        _, begun = list(self._running.values())[-self._processors]
        return max(0, begun + SLOW_SECONDS - self._clock())

    @property
    def _waiting_calls(self) -> int:
        return len(self._waiting[False]) + len(self._waiting[True])

    @property
    def _most_expensive_run(self) -> bool:
        return sum(expensive for expensive, _ in self._running.values()) >= max(1, self._limit - 1)
