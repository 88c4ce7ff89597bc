"""The deadline of an operation: all of its attempts, retries, pauses and reads of evidence end before it.

An operation is a repository call, a REST request or an invocation. Whoever begins one opens `within(seconds)`; the
transport and every retry policy inside ask `remaining()`. Deadlines nest, and the earliest holds: what is opened inside
never extends what is around it.

A write that was sent and not answered needs time to look for evidence of what became of it. With `reserve`, a share of
the time is kept for that: `remaining()` counts it only inside `evidence()`.

Time is the wall clock: a frozen Lambda's monotonic clock stands still, so an operation that was frozen would go on
after the leases it stands on have ended.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from math import inf
from types import TracebackType
from typing import Final, NamedTuple, Self

from dynashard.errors import ConfigurationError

LONGEST_OPERATION: Final = 29.0
"""Seconds that an operation may take where nobody says: as long as a request over the API gateway."""
RESERVED_SHARE: Final = 0.2
"""Which part of an operation's time is kept for evidence."""
LEAST_RESERVED: Final = 0.5
"""Seconds that are kept at least, for one read; of an operation of less than twice that, half of its time."""


def require_time(seconds: float) -> None:
    """Refuse a longest operation of no length.

    Raises:
        ConfigurationError: it is not above 0 seconds.
    """
    if not seconds > 0:
        raise ConfigurationError(
            f"operation_seconds is {seconds:g}: an operation needs time. Give seconds above 0, at most "
            "TOPOLOGY_OPERATION_SECONDS, for which changes of shard counts wait"
        )


class _Deadline(NamedTuple):
    """When an operation ends: its work, and its reads of evidence."""

    work: float
    end: float
    clock: Callable[[], float]


_DEADLINE: ContextVar[_Deadline | None] = ContextVar("dynashard_deadline", default=None)


class within:  # noqa: N801 - reads as a statement: `with within(5):`
    """Bound everything that is sent inside this context, in this thread and in those that carry its context.

    Args:
        seconds: from now on; an earlier deadline around it holds.
        clock: the wall clock, in epoch seconds. None takes that of the deadline around it, or the system's.
        reserve: keep a share of the time for `evidence`.
    """

    __slots__ = ("_clock", "_reserve", "_seconds", "_token")

    def __init__(self, seconds: float, clock: Callable[[], float] | None = None, *, reserve: bool = False) -> None:
        self._seconds = seconds
        self._clock = clock
        self._reserve = reserve
        self._token: Token[_Deadline | None] | None = None

    def __enter__(self) -> Self:
        outer = _DEADLINE.get()
        clock = self._clock or (time.time if outer is None else outer.clock)
        now = clock()
        seconds, work = self._seconds, inf
        if outer is not None:
            there = now if outer.clock is clock else outer.clock()
            seconds, work = min(seconds, outer.end - there), outer.work - there
        kept = max(seconds * RESERVED_SHARE, min(LEAST_RESERVED, seconds / 2)) if self._reserve else 0.0
        self._token = _DEADLINE.set(_Deadline(now + min(work, seconds - kept), now + seconds, clock))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _DEADLINE.reset(self._token)


class evidence(within):  # noqa: N801 - reads as a statement: `with evidence():`
    """Inside, the time that the operation has kept may be used: to find out what became of a write."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(inf)

    def __enter__(self) -> Self:
        known = _DEADLINE.get()
        if known is not None:
            self._token = _DEADLINE.set(known._replace(work=known.end))
        return self


def remaining() -> float:
    """Seconds until the deadline in force; infinite if there is none, not above zero if it has passed."""
    known = _DEADLINE.get()
    return inf if known is None else known.work - known.clock()
