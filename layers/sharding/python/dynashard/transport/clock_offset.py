"""How far this machine's clock is off from DynamoDB's, learned from the `Date` of answers.

A `Date` has whole seconds. An answer that was requested at `sent` and arrived at `received` was dated in between. So
the clock is ahead by between `sent - date - 1` and `received - date` seconds. Each answer narrows what is known: the
first one of a second says best how far the clock is ahead at most, and the last one how far it is at least.

Somebody may set the clock while the process runs. The monotonic clock is never set, so what is known holds only as long
as both clocks go on together. A frozen Lambda's monotonic clock stands still, which looks alike.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from dynashard.runtime import Runtime

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RESOLUTION: Final = 1.0
_LATER: Final = 0.9
"""Seconds after an answer from which on another one of the same second shows more."""
_DRIFT: Final = 0.001
"""Seconds by which a clock may change in a second: clocks that are kept in time are slewed by less."""
_SET: Final = 1.0
"""Seconds by which the wall clock and the monotonic clock may move apart before nothing is known any more."""


class Range(NamedTuple):
    """By how many seconds a clock is ahead, at least and at most; below 0 it is behind."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The best estimate."""
        return (self.low + self.high) / 2

    def widened(self, back: float, forward: float) -> "Range":
        """Return the range after the clock may have been set back or forward by up to so many seconds."""
        return Range(self.low - back, self.high + forward)


class _Known(Struct, frozen=True):
    """What was known at a time of the clock, when that was so far ahead of the monotonic clock."""

    range: Range
    at: float
    apart: float


class ClockOffset:
    """What is known about one clock. Safe to share between threads: what is known is replaced as a whole.

    `runtime` has the clock, and a monotonic one that shows when it was set; None is a clock that is never set. `date`
    is the one observed last. Another answer of the same date shows more if it was requested from the time `again` of
    this clock on, or before `since`, because the clock was set back then.
    """

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.date = ""
        self.since = self.again = 0.0
        self._runtime = runtime
        self._known: _Known | None = None

    def observe(self, date: str, sent: float, received: float) -> None:
        """Take the date of an answer, and the times by this clock between which it was answered, in epoch seconds."""
        if date == self.date and self.since <= sent < self.again:
            return
        self.date, self.since, self.again = date, sent, sent + _LATER
        at = _epoch_seconds(date)
        if at is None or received < sent:
            return
        found = Range(sent - at - _RESOLUTION, received - at)
        known, before = self._known, self._range()
        if known is not None and before is not None:
            drift = abs(received - known.at) * _DRIFT
            low, high = before.widened(drift, drift)
            both = Range(max(found.low, low), min(found.high, high))
            # If they contradict each other, the clock has been set in the meantime.
            found = both if both.low <= both.high else found
        self._known = _Known(found, received, self._ahead_of_monotonic())

    @property
    def seconds(self) -> float | None:
        """By how many seconds the clock is ahead, as far as is known; below 0 it is behind. None if nothing is."""
        known = self._range()
        return None if known is None else known.middle

    @property
    def furthest(self) -> float:
        """By how many seconds the clock may be ahead, or behind if that is more, as a number below 0."""
        low, high = self._range() or Range(0.0, 0.0)
        return high if high > -low else low

    @property
    def outdated(self) -> bool:
        """Whether the clock may have been set since the last answer, so that nothing is known any more."""
        return self._known is not None and self._range() is None

    def exceeds(self, most: float) -> bool:
        """Whether the clock is off by more than `most` seconds, or may be; False as long as no answer had a date."""
        known = self._range()
        return self._known is not None and (known is None or max(-known.low, known.high) > most)

    def take_next(self) -> None:
        """Take the next answer, also if it shows no more than the last one would if the clock had not been set."""
        self.again = self.since

    def _range(self) -> Range | None:
        known = self._known
        if known is None:
            return None
        moved = self._ahead_of_monotonic() - known.apart
        return None if abs(moved) > _SET else known.range.widened(max(0.0, -moved), max(0.0, moved))

    def _ahead_of_monotonic(self) -> float:
        return 0.0 if self._runtime is None else self._runtime.clock() - self._runtime.monotonic()


@runtime_checkable
class Clocked(Protocol):
    """A transport that learns how far its machine's clock is off."""

    @property
    def clock_offset(self) -> ClockOffset:
        """What it has learned."""
        ...


def clock_offset_of(transport: object) -> ClockOffset:
    """Return what a transport learns about the clock; one that learns nothing has an offset that stays unknown."""
    return transport.clock_offset if isinstance(transport, Clocked) else ClockOffset()


def _epoch_seconds(date: str) -> float | None:
    """Read a date such as `Tue, 24 Nov 2026 13:45:47 GMT`; None for anything else. Source: RFC 9110, section 5.6.7."""
    try:
        day, month, year, time = date[5:7], _MONTHS.index(date[8:11]) + 1, date[12:16], date[17:25].split(":")
        hour, minute, second = map(int, time)
        # A leap second is the end of the minute here.
        return datetime(int(year), month, int(day), hour, minute, min(second, 59), tzinfo=UTC).timestamp()
    except ValueError:
        return None
