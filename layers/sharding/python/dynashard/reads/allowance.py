"""The quota of one request: how many Queries it may send, and for how long.

A request can read several times: a page again because it was too large, two scans for one answer, a count of several
partitions. So a function opens an allowance around each request, and every listing, scan and count inside uses it up.
Without an allowance nothing is bounded.
"""

import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from math import inf
from threading import Lock
from typing import Final

from dynashard.errors import QueryTooWideError
from dynashard.transport.deadline import remaining

UNBOUNDED: Final = sys.maxsize


class Allowance:
    """The Queries and the seconds that are left for one request. Safe to share between threads.

    When the time is over, pages end short, and scans and counts are refused. `clock` is monotonic, in seconds.
    """

    def __init__(
        self, queries: int = UNBOUNDED, seconds: float = inf, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.queries = queries
        self._until = clock() + seconds
        self._clock = clock
        self._used = 0
        self._lock = Lock()

    @property
    def left(self) -> int:
        """The number of Queries that may still be sent."""
        return self.queries - self._used

    @property
    def over(self) -> bool:
        """Whether its time is over."""
        return self._clock() >= self._until

    def demand(self, queries: int, reason: str, *, field: str | None = None) -> None:
        """Refuse a read that needs more Queries than are left, with `QueryTooWideError`.

        `reason` says why and what to do instead, at the end of the message; `field` is the argument at fault.
        """
        if queries > self.left:
            needed = "1 Query" if queries == 1 else f"{queries} Queries"
            spent = f" and has sent {self._used} already" if self._used else ""
            message = f"this takes {needed}, and one request may send {self.queries}{spent}: {reason}"
            raise QueryTooWideError(message, field=field)

    def take(self, queries: int) -> None:
        """Count Queries before they are sent; if `QueryTooWideError` is raised, none of them may be sent."""
        with self._lock:
            if queries > self.queries - self._used:
                self.demand(queries, "read less at a time, with a lower limit, fewer partitions or a shorter range")
            self._used += queries


_ALLOWANCES: ContextVar[Allowance | None] = ContextVar("dynashard_allowance", default=None)


class allowing:  # noqa: N801 - called like a function, as the contexts of `contextlib`
    """Bound all listings, scans and counts inside this context, including the threads of scans.

    `seconds` do not reach beyond the deadline of the operation around it.
    """

    def __init__(self, queries: int, seconds: float = inf) -> None:
        self._allowance = Allowance(queries, min(seconds, remaining()))

    def __enter__(self) -> Allowance:
        self._token = _ALLOWANCES.set(self._allowance)
        return self._allowance

    def __exit__(self, *_: object) -> None:
        _ALLOWANCES.reset(self._token)


def current_allowance() -> Allowance:
    """Return the allowance of this context, or one without bounds."""
    return _ALLOWANCES.get() or Allowance()
