"""The deadline of an operation: all of its attempts, retries and pauses end before it.

An operation is a repository call, a REST request or an invocation. Whoever begins one opens `within(seconds)`; the
transport and every retry policy inside ask `remaining()`. Deadlines nest, and the earliest holds.

Time is the wall clock: a frozen Lambda's monotonic clock stands still, so an operation that was frozen would go on
after the leases it stands on have ended.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from math import inf
from types import TracebackType
from typing import Final, Self

LONGEST_OPERATION: Final = 29.0
"""Seconds that a request may take where nobody says: as long as a request over the API gateway."""
_UNTIL: ContextVar[float] = ContextVar("dynashard_deadline", default=inf)


class within:  # noqa: N801 - reads as a statement: `with within(5):`
    """Bound everything that is sent inside this context, in this thread and in those that carry its context.

    Args:
        seconds: from now on; an earlier deadline around it holds.
        clock: the wall clock, in epoch seconds.
    """

    __slots__ = ("_clock", "_seconds", "_token")

    def __init__(self, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._clock = clock
        self._token: Token[float] | None = None

    def __enter__(self) -> Self:
        until = self._clock() + self._seconds
        outer = _UNTIL.get()
        self._token = _UNTIL.set(min(outer, until))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _UNTIL.reset(self._token)


def remaining(clock: Callable[[], float] = time.time) -> float:
    """Seconds until the deadline in force; infinite if there is none, not above zero if it has passed."""
    until = _UNTIL.get()
    return inf if until == inf else until - clock()
