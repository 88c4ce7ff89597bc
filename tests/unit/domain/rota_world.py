"""Random schedules, and who is on call by them, minute by minute: an answer that shares nothing with `rota`."""

import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from domain.samples.rota import Source, Turn, Unit
from domain.samples.schedules import Layer, Restriction

CHANGES = (
    ("UTC", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2025, 2, 23, 2, tzinfo=UTC)),  # its clock goes back for Ramadan
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/St_Johns", datetime(2026, 11, 1, 4, 30, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2026, 6, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),  # its clock changes by half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/London", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # it skipped this day
    ("Pacific/Chatham", datetime(2026, 9, 26, 14, tzinfo=UTC)),
)
"""Zones, and when the clock of each changes. Two have no changes."""
MINUTE = timedelta(minutes=1)
QUARTER = timedelta(minutes=15)


@dataclass(frozen=True)
class Scene:
    """A schedule, and the range that is looked at."""

    zone: str
    layers: list[Layer]
    shifts: list[Turn]
    overrides: list[Turn]
    start: datetime
    end: datetime


def scene(seed: int) -> Scene:
    """Return a random schedule. Most of the ranges lie around a change of a clock."""
    chance = random.Random(seed)
    zone, change = chance.choice(CHANGES)
    if chance.random() < 0.4:
        change = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=chance.randrange(365))
    start = change - timedelta(minutes=chance.randrange(2 * 1440))
    end = start + timedelta(minutes=chance.randrange(1, 4 * 1440))
    layers = [_layer(chance, change) for _ in range(chance.randrange(4))]
    shifts = [_turn(chance, start, Source.SHIFT, n) for n in range(chance.randrange(4))]
    overrides = [_turn(chance, start, Source.OVERRIDE, n) for n in range(chance.randrange(5))]
    chance.shuffle(overrides)
    return Scene(zone, layers, shifts, overrides, start, end)


def _layer(chance: random.Random, around: datetime) -> Layer:
    # Half of the handoffs come near the change, where clock times are skipped or come twice.
    minutes = chance.randrange(1440) if chance.random() < 0.5 else chance.randrange(-90, 90, 30)
    starts = around + timedelta(days=chance.randrange(-60, 2), minutes=minutes)
    ends = starts + timedelta(minutes=chance.randrange(1, 90 * 1440)) if chance.random() < 0.3 else None
    unit = chance.choice(list(Unit))
    return Layer(
        users=[f"user{chance.randrange(6)}" for _ in range(chance.randrange(1, 5))],
        every=chance.randrange(1, 15 if unit is Unit.HOURS else 4),
        unit=unit,
        starts_at=starts,
        ends_at=ends,
        restrictions=[_restriction(chance) for _ in range(chance.choice((0, 0, 1, 3)))],
    )


def _restriction(chance: random.Random) -> Restriction:
    days = sorted(chance.sample(range(7), chance.randrange(8)))
    names = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    opens, closes = (chance.randrange(1440) if chance.random() < 0.7 else 0 for _ in range(2))
    return Restriction.model_validate(
        {"on": [names[day] for day in days], "opens": _clock(opens), "closes": _clock(closes)}
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _turn(chance: random.Random, around: datetime, source: Source, number: int) -> Turn:
    start = around + timedelta(minutes=chance.randrange(-1440, 3 * 1440, chance.choice((1, 720))))
    end = start + timedelta(minutes=chance.randrange(1, 2 * 1440))
    return Turn(start, end, f"{source.value}er{number}", source, f"{source.value}{number}")


def minutes(known: Scene) -> list[tuple[str | None, str]]:
    """Return who is on call at each minute of the range, with the source."""
    handoffs = [_handoffs(layer, known.zone, known.end) for layer in known.layers]
    windows = [_windows(layer, ZoneInfo(known.zone)) for layer in known.layers]
    found, at = [], known.start
    while at < known.end:
        found.append(_at(known, handoffs, windows, at))
        at += MINUTE
    return found


def _at(
    known: Scene, handoffs: list[list[datetime]], windows: list[Callable[[datetime], bool]], at: datetime
) -> tuple[str | None, str]:
    for turns in (known.overrides, known.shifts):
        best: Turn | None = None
        for turn in turns:
            if turn.start <= at < turn.end and (best is None or (turn.start, turn.of) > (best.start, best.of)):
                best = turn
        if best is not None:
            return best.user, best.of
    for number in range(len(known.layers) - 1, -1, -1):
        layer = known.layers[number]
        if layer.starts_at <= at and (layer.ends_at is None or at < layer.ends_at) and windows[number](at):
            passed = bisect_right(handoffs[number], at)
            return layer.users[passed % len(layer.users)], str(number + 1)
    return None, ""


def _windows(layer: Layer, zone: ZoneInfo) -> Callable[[datetime], bool]:
    """Return a function that says whether a layer is on call at a time, by its restrictions."""
    restricted = [
        (window.days or range(7), (window.starts.hour, window.starts.minute), (window.ends.hour, window.ends.minute))
        for window in layer.restrictions
    ]

    def open_at(at: datetime) -> bool:
        if not restricted:
            return True
        clock = at.astimezone(zone)
        today, now = clock.weekday(), (clock.hour, clock.minute)
        for on, opens, closes in restricted:
            if opens < closes:
                if today in on and opens <= now < closes:
                    return True
            elif (today in on and now >= opens) or ((today - 1) % 7 in on and now < closes):
                return True
        return False

    return open_at


def _handoffs(layer: Layer, zone: str, until: datetime) -> list[datetime]:
    """Return every handoff after the start of a layer, in order."""
    found: list[datetime] = []
    number = 1
    begins = layer.starts_at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    while True:
        if layer.unit is Unit.HOURS:
            at = layer.starts_at + timedelta(hours=layer.every * number)
        else:
            days = layer.every * number * (7 if layer.unit is Unit.WEEKS else 1)
            at = instant(date.fromordinal(begins.toordinal() + days), begins.time(), zone)
        if at > until:
            return found
        found.append(at)
        number += 1


@cache
def instant(day: date, clock: time, zone: str) -> datetime:
    """Return the first time at which a zone's clock shows this, found by trying every offset."""
    shows = datetime.combine(day, clock)
    offset = timedelta(hours=15)
    while offset >= timedelta(hours=-13):
        tried = (shows - offset).replace(tzinfo=UTC)
        if tried.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == shows:
            return tried
        offset -= QUARTER
    # Skipped: as if the clock had gone on as two days before.
    before = (shows - timedelta(days=2)).replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset()
    assert before is not None
    return (shows - before).replace(tzinfo=UTC)
