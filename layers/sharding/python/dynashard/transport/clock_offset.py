"""How far this machine's clock is off from DynamoDB's, learned from the `Date` of answers.

A `Date` has whole seconds. An answer that was requested at `sent` and arrived at `received` was dated in between. So
the clock is ahead by between `sent - date - 1` and `received - date` seconds. Each answer narrows what is known: the
first one of a second says best how far the clock is ahead at most, and the last one how far it is at least.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol, runtime_checkable

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RESOLUTION: Final = 1.0
_PRECISE: Final = 2.0
"""Seconds between what is known at least and at most, up to which both are taken for possible."""
_LATER: Final = 0.9
"""Seconds after an answer from which on another one of the same second shows more."""
_DRIFT: Final = 0.001
"""Seconds by which a clock may change in a second: clocks that are kept in time are slewed by less."""


class Range(NamedTuple):
    """By how many seconds a clock is ahead, at least and at most; below 0 it is behind."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The best estimate."""
        return (self.low + self.high) / 2


class ClockOffset:
    """What is known about one clock. Safe to share between threads: what is known is replaced as a whole.

    `date` is the one observed last, and `again` the time of this clock from which on another answer of the same date
    shows more.
    """

    def __init__(self) -> None:
        self.date = ""
        self.again = 0.0
        self._known: tuple[Range, float] | None = None

    def observe(self, date: str, sent: float, received: float) -> None:
        """Take the date of an answer, and the times by this clock between which it was answered, in epoch seconds."""
        if date == self.date and sent < self.again:
            return
        self.date, self.again = date, sent + _LATER
        at = _epoch_seconds(date)
        if at is None or received < sent:
            return
        found = Range(sent - at - _RESOLUTION, received - at)
        if self._known is not None:
            (low, high), when = self._known
            drift = abs(received - when) * _DRIFT
            both = Range(max(found.low, low - drift), min(found.high, high + drift))
            # If they contradict each other, the clock has been set in the meantime.
            found = both if both.low <= both.high else found
        self._known = (found, received)

    @property
    def seconds(self) -> float | None:
        """By how many seconds the clock is ahead, as far as is known; below 0 it is behind. None if nothing is."""
        known = self._known
        return None if known is None else known[0].middle

    def exceeds(self, most: float) -> bool:
        """Whether the clock is off by more than `most` seconds, or may be; False if nothing is known."""
        if self._known is None:
            return False
        low, high = self._known[0]
        # If all answers were slow, they say too little to suspect a clock that they do not prove to be off.
        return max(low, -high) > most or (high - low <= _PRECISE and max(-low, high) > most)


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
