"""The Queries that one request may send, and how long it may go on sending them.

A request can read several times: a page again because it was too large, two scans for one answer, a count of several
partitions. So the bound belongs to the request, not to the call. A function opens an allowance around each request,
and every listing, scan and count inside takes from it. Without an allowance nothing is bounded.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from threading import Lock
from typing import Final

from dynashard.errors import QueryTooWideError
from dynashard.transport.deadline import remaining

UNBOUNDED: Final = sys.maxsize


class Allowance:
    """The Queries and the time that are left for one request. Safe to share between threads.

    Args:
        queries: the most Queries it may send.
        seconds: how long it may read. After that pages end short, and scans and counts are refused.
        clock: monotonic, in seconds.
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
        """How many Queries may still be sent."""
        return self.queries - self._used

    @property
    def over(self) -> bool:
        """Whether its time is over."""
        return self._clock() >= self._until

    def demand(self, queries: int, reason: str, *, field: str | None = None) -> None:
        """Refuse a read that needs more Queries than are left.

        Args:
            queries: how many it needs.
            reason: why it needs them and what to do instead; it follows the numbers in the message.
            field: the argument at fault.

        Raises:
            QueryTooWideError: with both numbers and the reason.
        """
        if queries > self.left:
            most = f"one request may send {self.queries}"
            spent = f" and has sent {self._used} already" if self._used else ""
            raise QueryTooWideError(f"this takes {_queries(queries)}, and {most}{spent}: {reason}", field=field)

    def take(self, queries: int) -> None:
        """Count Queries that are about to be sent.

        Raises:
            QueryTooWideError: there are more than are left; none of them may be sent.
        """
        with self._lock:
            self.demand(queries, "read less at a time, with a lower limit, fewer partitions or a shorter range")
            self._used += queries


def _queries(number: int) -> str:
    return "1 Query" if number == 1 else f"{number} Queries"


_ALLOWANCES: ContextVar[Allowance | None] = ContextVar("dynashard_allowance", default=None)


@contextmanager
def allowing(queries: int, seconds: float = inf) -> Iterator[Allowance]:
    """Bound all listings, scans and counts inside this context, including the threads of scans.

    Args:
        queries: the most Queries in all.
        seconds: how long it may read; not beyond the deadline of the operation around it.
    """
    allowance = Allowance(queries, min(seconds, remaining()))
    token = _ALLOWANCES.set(allowance)
    try:
        yield allowance
    finally:
        _ALLOWANCES.reset(token)


def current_allowance() -> Allowance:
    """Return the allowance of this context; one without bounds if there is none."""
    return _ALLOWANCES.get() or Allowance()
