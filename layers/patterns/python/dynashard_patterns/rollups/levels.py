"""Spans of time that roll-ups sum up, in UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from dynashard.errors import InvalidQueryError

MAX_SPANS: Final = 1500
"""Spans of one group in one answer: a day of minutes, two months of hours, four years of days."""
LAST: Final = datetime.max.replace(tzinfo=UTC)
"""The last of all times, where spans that reach beyond it end."""


class Level(StrEnum):
    """How long a span is."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    def start(self, at: datetime) -> datetime:
        """When the span begins that a time lies in. The time has a zone."""
        at = at.astimezone(UTC).replace(second=0, microsecond=0)
        if self is Level.MINUTE:
            return at
        at = at.replace(minute=0)
        if self is Level.HOUR:
            return at
        return at.replace(hour=0) if self is Level.DAY else at.replace(hour=0, day=1)

    def end(self, start: datetime) -> datetime:
        """When the span ends that begins then: the start of the next, or the last of all times."""
        if self is not Level.MONTH:
            return later(start, _LENGTHS[self])
        after = later(start.replace(day=1), timedelta(days=32))
        return after if after == LAST else self.start(after)

    def within(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The starts of the spans that begin from `start` on and before `end`."""
        at = self.start(start)
        if at < start:
            at = self.end(at)
        while at < end:
            yield at
            at = self.end(at)


_LENGTHS: Final = {Level.MINUTE: timedelta(minutes=1), Level.HOUR: timedelta(hours=1), Level.DAY: timedelta(days=1)}


def later(at: datetime, by: timedelta) -> datetime:
    """Return the time that much later, or the last of all times."""
    try:
        return at + by
    except OverflowError:
        return LAST


def check_range(level: Level, start: datetime, end: datetime) -> None:
    """Refuse a range of time that is none, or that has too many spans.

    Raises:
        InvalidQueryError: with the argument at fault.
    """
    for name, at in (("from", start), ("to", end)):
        if at.tzinfo is None:
            raise InvalidQueryError(f"{name}: give the time with its zone, such as 2026-11-21T12:00:00Z", field=name)
        try:
            at.astimezone(UTC)
        except OverflowError:
            text = f"{name}: {at} lies outside the years 1 to 9999 in UTC; give a time within them"
            raise InvalidQueryError(text, field=name) from None
    if end <= start:
        raise InvalidQueryError("the range ends before it begins", field="to")
    for count, _ in enumerate(level.within(start, end), start=1):
        if count > MAX_SPANS:
            raise InvalidQueryError(
                f"more than {MAX_SPANS} spans of a {level} lie in the range: ask for less time or a coarser level",
                field="to",
            )
