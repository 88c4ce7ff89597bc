"""Admission control: which call gets an execution environment next, and which is refused, while all are busy.

Cheap calls go first, and expensive calls never use the last environment, so a GET does not wait for a listing that
takes seconds. The queue is bounded. Expensive calls are refused when a quarter of it is taken, cheap calls only when it
is full.
"""

from collections import deque
from typing import Final, Generic, TypeVar

C = TypeVar("C")

EXPENSIVE_SHARE: Final = 4
"""Expensive calls are accepted while less than this fraction (1 / 4) of the places is taken."""


class FullError(Exception):
    """Too many calls wait already; the caller may try again after a moment."""


class Admission(Generic[C]):
    """The calls of one function: at most `limit` run, and `places` wait. Not safe to share between threads."""

    def __init__(self, limit: int, places: int) -> None:
        self._limit = limit
        self._places = places
        self._waiting: dict[bool, deque[C]] = {False: deque(), True: deque()}
        self._running: dict[bool, int] = {False: 0, True: 0}

    def join(self, call: C, *, expensive: bool) -> None:
        """Put a call into the queue. Raises `FullError` if the queue has no place for it."""
        free = self._limit - sum(self._running.values())
        most = self._places // EXPENSIVE_SHARE if expensive else self._places
        if self._waiting_calls >= most + free:
            raise FullError
        self._waiting[expensive].append(call)

    def next(self) -> tuple[C, bool] | None:
        """Return the call that may run now and whether it is expensive; None if there is none. It runs until `done`."""
        if sum(self._running.values()) >= self._limit:
            return None
        for expensive in (False, True):
            if self._waiting[expensive] and not (expensive and self._running[True] >= self._most_expensive):
                self._running[expensive] += 1
                return self._waiting[expensive].popleft(), expensive
        return None

    def done(self, *, expensive: bool) -> None:
        """A call has ended."""
        self._running[expensive] -= 1

    def drain(self) -> list[C]:
        """Remove and return all calls that wait."""
        left = [*self._waiting[False], *self._waiting[True]]
        for each in self._waiting.values():
            each.clear()
        return left

    @property
    def _waiting_calls(self) -> int:
        return len(self._waiting[False]) + len(self._waiting[True])

    @property
    def _most_expensive(self) -> int:
        return max(1, self._limit - 1)
