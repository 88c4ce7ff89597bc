"""The deadline of an operation: all of its attempts, retries, pauses and reads of evidence end before it.

An operation is a repository call, a REST request or an invocation. It opens `within(seconds)`; the transport and every
retry policy inside ask `remaining()`. Deadlines nest, and the earliest holds. With `reserve`, a share of the time is
kept to find out what became of a write that was sent and not answered: `remaining()` counts it only in `evidence()`.

Time is the wall clock, because the monotonic clock of a frozen Lambda stands still: an operation would go on after the
leases that it relies on have ended.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.errors import ConfigurationError

LONGEST_OPERATION: Final = 29.0
"""Seconds that an operation may take by default: as long as a request through the API gateway."""
RESERVED_SHARE: Final = 0.2
"""The share of an operation's time that is kept for evidence."""
LEAST_RESERVED: Final = 0.5
"""Seconds that are kept at least, for one read; half of the time of an operation of less than twice that."""


def require_time(seconds: float) -> None:
    """Refuse a longest operation of no length with `ConfigurationError`."""
    if not seconds > 0:
        raise ConfigurationError(
            f"operation_seconds is {seconds:g}; it must be above 0, and at most TOPOLOGY_OPERATION_SECONDS, for which "
            "resizes wait"
        )


class _Deadline(Struct, frozen=True):
    """When an operation ends: its work, and its reads of evidence."""

    work: float
    end: float
    clock: Callable[[], float]
    evidence: bool = False


_DEADLINE: ContextVar[_Deadline | None] = ContextVar("dynashard_deadline", default=None)


class within:  # noqa: N801 - called like a function, as the contexts of `contextlib`
    """Bound everything that is sent inside this context, in this thread and in those that carry its context.

    `clock` is the wall clock, in epoch seconds; None uses that of the deadline around it, or the system's.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] | None = None, *, reserve: bool = False) -> None:
        self._seconds, self._clock, self._reserve = seconds, clock, reserve

    def __enter__(self) -> None:
        self._token = begin(self._seconds, self._clock, reserve=self._reserve)

    def __exit__(self, *_: object) -> None:
        end(self._token)


def begin(seconds: float, clock: Callable[[], float] | None = None, *, reserve: bool = False) -> Token[Any]:
    """Begin what `within` does, in a third of the CPU time. The caller passes the result to `end`."""
    outer, work = _DEADLINE.get(), inf
    clock = clock or (time.time if outer is None else outer.clock)
    now = clock()
    if outer is not None:
        if outer.end <= now + seconds and outer.clock is clock and not reserve:
            return _DEADLINE.set(outer)
        # Two clocks need not agree on the time, so what is left by the one around it counts from now by this one.
        there = now if outer.clock is clock else outer.clock()
        seconds, work = min(seconds, outer.end - there), outer.work - there
    kept = max(seconds * RESERVED_SHARE, min(LEAST_RESERVED, seconds / 2)) if reserve else 0.0
    seeking = outer is not None and outer.evidence
    return _DEADLINE.set(_Deadline(now + min(work, seconds - kept), now + seconds, clock, seeking))


end: Final = _DEADLINE.reset
"""Go back to the deadline that was in force at `begin`."""


@contextmanager
def evidence() -> Iterator[None]:
    """Allow the reserved time to be used in this context: to find out what became of a write."""
    known = _DEADLINE.get()
    token = _DEADLINE.set(None if known is None else replace(known, work=known.end, evidence=True))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def seeks_evidence() -> bool:
    """Whether a deadline is in force, and this context finds out what became of a write."""
    known = _DEADLINE.get()
    return known is not None and known.evidence


def remaining() -> float:
    """Return the seconds until the deadline in force; infinite without one, not above 0 once it has passed."""
    known = _DEADLINE.get()
    return inf if known is None else known.work - known.clock()
