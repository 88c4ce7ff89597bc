"""Who is on call when: the turns of layers, shifts and overrides as one rota. Pure functions of times.

A layer is a rotation of users, with handoffs on the clock of the schedule's zone. Later layers win over earlier ones,
shifts over layers, overrides over shifts; of two shifts or two overrides, the one that starts later, then the greater
id. A stretch without anybody is a gap, and is said.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import NamedTuple, Protocol

DAY = timedelta(days=1)
_PROBE = timedelta(hours=12)
"""No zone changes its offset twice in this time."""
_SECOND = timedelta(seconds=1)


class Unit(StrEnum):
    """The unit of a handoff's interval."""

    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


class Source(StrEnum):
    """What puts a user on call."""

    LAYER = "layer"
    SHIFT = "shift"
    OVERRIDE = "override"


class Window(Protocol):
    """A part of a day, on some days of a week; it ends on the next day if it does not end after its start."""

    @property
    def days(self) -> Sequence[int]:
        """The days on which it starts, Monday is 0; none for every day."""

    @property
    def starts(self) -> time:
        """When it starts, on the clock of the zone."""

    @property
    def ends(self) -> time:
        """When it ends; not part of it."""


class Rotation(Protocol):
    """A layer as this module needs it."""

    @property
    def users(self) -> Sequence[str]:
        """Who takes turns, in order."""

    @property
    def every(self) -> int:
        """How many units a turn takes."""

    @property
    def unit(self) -> Unit:
        """The unit. Hours pass as they do; days and weeks are those of the zone's clock."""

    @property
    def starts_at(self) -> datetime:
        """When the first turn starts."""

    @property
    def ends_at(self) -> datetime | None:
        """When the layer ends; None for never."""

    @property
    def windows(self) -> Sequence[Window]:
        """When somebody of the layer is on call; none for always."""


class Turn(NamedTuple):
    """A time in which somebody is on call, from `start` until before `end`.

    Attributes:
        start: when it starts.
        end: when it ends.
        user: who is on call; None for nobody.
        source: what says so; None for nobody.
        of: the id of the shift or the override, or the number of the layer, from 1 on.
    """

    start: datetime
    end: datetime
    user: str | None
    source: Source | None = None
    of: str = ""


def rota(
    zone: tzinfo,
    layers: Sequence[Rotation],
    shifts: Iterable[Turn],
    overrides: Iterable[Turn],
    *,
    start: datetime,
    end: datetime,
) -> list[Turn]:
    """Return who is on call from `start` until before `end`, without a break: gaps are turns of nobody.

    Args:
        zone: the zone of the schedule.
        layers: its rotations.
        shifts: its planned turns.
        overrides: turns that replace what is planned.
        start: the beginning, with a zone.
        end: the end, with a zone.
    """
    ranked: list[list[Turn]] = [
        [turn._replace(of=str(number)) for turn in turns_of(layer, zone, start, end)]
        for number, layer in enumerate(layers, 1)
    ]
    for given in (shifts, overrides):
        ranked += [[turn] for turn in sorted(given, key=lambda turn: (turn.start, turn.of))]
    turns = ((rank, turn) for rank, some in enumerate(ranked) for turn in some)
    return _laid_over(turns, start.astimezone(UTC), end.astimezone(UTC))


def turns_of(layer: Rotation, zone: tzinfo, start: datetime, end: datetime) -> Iterator[Turn]:
    """Yield the turns of a layer between two times, in order.

    A handoff whose clock time is skipped happens as if the clock had not been changed; one whose clock time comes twice
    happens the first time.
    """
    begins, until = max(start, layer.starts_at), end if layer.ends_at is None else min(end, layer.ends_at)
    if begins >= until:
        return
    open_times = [(begins, until)] if not layer.windows else list(_open(layer.windows, zone, begins, until))
    number = _number_at(layer, zone, begins)
    for opens, closes in open_times:
        at = opens
        while at < closes:
            following = _handoff(layer, zone, number + 1)
            if following <= at:
                number += 1
                continue
            ends = min(following, closes)
            yield Turn(at, ends, layer.users[number % len(layer.users)], Source.LAYER)
            at = ends


def _number_at(layer: Rotation, zone: tzinfo, at: datetime) -> int:
    """Return how many handoffs there were until a time."""
    if layer.unit is Unit.HOURS:
        return (at - layer.starts_at) // timedelta(hours=layer.every)
    days = (at.astimezone(zone).date() - layer.starts_at.astimezone(zone).date()).days
    # One less for a handoff later on the day, and one for a day that the zone skipped, as Samoa did in 2011.
    number = max(0, days // (layer.every * _days(layer)) - 2)
    while _handoff(layer, zone, number + 1) <= at:
        number += 1
    return number


def _handoff(layer: Rotation, zone: tzinfo, number: int) -> datetime:
    """Return when a turn starts, the first one with the number 0."""
    if layer.unit is Unit.HOURS or not number:
        return layer.starts_at.astimezone(UTC) + number * timedelta(hours=layer.every)
    # A sum of times on one clock is the first of two times that the clock shows: its `fold` is 0.
    clock = layer.starts_at.astimezone(zone) + number * layer.every * _days(layer) * DAY
    return clock.astimezone(UTC)


def _days(layer: Rotation) -> int:
    return 7 if layer.unit is Unit.WEEKS else 1


def _open(
    windows: Sequence[Window], zone: tzinfo, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times in which the clock of a zone shows a time of some window, in order, none touching the next."""
    last: tuple[datetime, datetime] | None = None
    for opens, closes in _pieces(windows, zone, start, end):
        if last is not None and opens <= last[1]:
            last = last[0], max(last[1], closes)
            continue
        if last is not None:
            yield last
        last = opens, closes
    if last is not None:
        yield last


def _pieces(
    windows: Sequence[Window], zone: tzinfo, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the same times, in the order of their starts, in pieces that may touch or overlap."""
    for since, until, offset in _offsets(zone, start, end):
        # The clock runs evenly between two changes of the offset.
        begins, ends = (each.replace(tzinfo=None) + offset for each in (since, until))
        day = begins.replace(hour=0, minute=0, second=0, microsecond=0) - DAY
        found: list[tuple[datetime, datetime]] = []
        while day < ends:
            for window in windows:
                if not window.days or day.weekday() in window.days:
                    opens = datetime.combine(day, window.starts)
                    closes = datetime.combine(day if window.starts < window.ends else day + DAY, window.ends)
                    if max(opens, begins) < min(closes, ends):
                        insort(found, (max(opens, begins), min(closes, ends)))
            day += DAY
        for opens, closes in found:
            yield (opens - offset).replace(tzinfo=UTC), (closes - offset).replace(tzinfo=UTC)


def _offsets(zone: tzinfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Yield the times between two changes of a zone's offset, with the offset."""
    since, at = start.astimezone(UTC), start.astimezone(UTC)
    end = end.astimezone(UTC)
    while at < end:
        following = min(at + _PROBE, end)
        if _offset(zone, following) != _offset(zone, at):
            changed = _change(zone, at, following)
            yield since, changed, _offset(zone, at)
            since = changed
        at = following
    if since < end:
        yield since, end, _offset(zone, since)


def _change(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """Return the first second with the offset that holds at `after`."""
    before = before.replace(microsecond=0)
    low, high = 0, -((before - after) // _SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, before + middle * _SECOND) == _offset(zone, after):
            high = middle
        else:
            low = middle
    return min(before + high * _SECOND, after)


def _offset(zone: tzinfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _laid_over(turns: Iterable[tuple[int, Turn]], start: datetime, end: datetime) -> list[Turn]:
    """Return one turn after another: at any time the one with the highest rank, and a gap where there is none."""
    events: list[tuple[datetime, bool, int, Turn]] = []
    for rank, turn in turns:
        begins, ends = max(turn.start, start), min(turn.end, end)
        if begins < ends:
            events += [(begins, True, rank, turn), (ends, False, rank, turn)]
    # Those that end come first, so that a rank is free when its next turn starts.
    events.sort(key=lambda event: event[:3])
    laid: list[Turn] = []
    running: dict[int, Turn] = {}
    ranks: list[int] = []
    at = start
    for when, opens, rank, turn in events:
        if at < when:
            _add(laid, at, when, running[ranks[-1]] if ranks else None)
            at = when
        if opens:
            running[rank] = turn
            insort(ranks, rank)
        else:
            ranks.remove(rank)
    if at < end:
        _add(laid, at, end, None)
    return laid


def _add(laid: list[Turn], start: datetime, end: datetime, turn: Turn | None) -> None:
    """Add a stretch; one that continues the last one makes that longer."""
    about = (None, None, "") if turn is None else (turn.user, turn.source, turn.of)
    if laid and laid[-1][2:] == about and laid[-1].end == start:
        start = laid.pop().start
    laid.append(Turn(start.astimezone(UTC), end, *about))
