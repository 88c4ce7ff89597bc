"""Entities for tests of roll-ups: songs whose beats are summed."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from dynashard import Dynashard, Entity, Index, Key, Registry, Shards
from dynashard_patterns.rollups import Level, RollUps

REGISTRY = Registry()
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Beat(
    Entity,
    name="test.v1.Beat",
    key=Key("{tenant}:{song}", "{at}#{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_time", partition="{tenant}", sort="{at}")],
    expires="expires_at",
    registry=REGISTRY,
):
    tenant: str
    song: str
    at: datetime
    id: str
    loud: int = 1
    note: str | None = None
    expires_at: datetime | None = None


class Sums(
    Entity,
    name="test.v1.Sums",
    key=Key("{tenant}:{song}", "{level}#{start}#{slot:02d}"),
    shards=Shards(2),
    registry=REGISTRY,
):
    tenant: str
    song: str
    level: Level
    start: datetime
    slot: int
    beats: int = 0
    loud: int = 0


class Months(Entity, name="test.v1.Months", key=Key("{tenant}:{level}", "{start}#{slot:02d}"), registry=REGISTRY):
    tenant: str
    level: Level
    start: datetime
    slot: int
    beats: int = 0
    loud: int = 0


def roll_ups(**changed: Any) -> RollUps[Beat]:
    declared: dict[str, Any] = {
        "name": "beats",
        "of": Beat,
        "at": "at",
        "into": {Sums: ("minute", "hour", "day"), Months: ("month",)},
        "add": lambda beat: {"beats": 1, "loud": beat.loud},
        "by_time": "by_time",
    }
    return RollUps(**{**declared, **changed})


BEATS = roll_ups()

Truth = Mapping[tuple[str, str], tuple[int, int]]
"""Number and loudness of beats, by the song and by the level with the start of its span."""


def beat(number: int, song: str = "one", *, minutes: int = 0, loud: int = 1, tenant: str = "abc") -> Beat:
    return Beat(tenant=tenant, song=song, at=NOON + timedelta(minutes=minutes), id=str(number), loud=loud)


def truth(beats: Iterable[Beat]) -> Truth:
    """Return the sums that the roll-ups of these beats must have. A repeated beat counts once."""
    counts: Counter[tuple[str, str]] = Counter()
    louds: Counter[tuple[str, str]] = Counter()
    for each in {(b.tenant, b.song, b.at, b.id): b for b in beats}.values():
        for level in Level:
            place = ("" if level is Level.MONTH else each.song, f"{level} {level.start(each.at)}")
            counts[place] += 1
            louds[place] += each.loud
    return {place: (counts[place], louds[place]) for place in counts}


def stored_sums(db: Dynashard, *songs: str, tenant: str = "abc") -> Truth:
    """Return the sums that the stored roll-ups have."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for song in songs or ("one", "two"):
        for level in (Level.MINUTE, Level.HOUR, Level.DAY):
            by = {"tenant": tenant, "song": song}
            start, end = level.start(NOON), NOON + timedelta(hours=10)
            for row in BEATS.read(db, by, level=level, start=start, end=end, consistent=True):
                found[song, f"{level} {row.start}"] = (row.beats, row.loud)
    start = Level.MONTH.start(NOON)
    for row in BEATS.read(db, {"tenant": tenant}, level="month", start=start, end=Level.MONTH.end(start)):
        found["", f"month {row.start}"] = (row.beats, row.loud)
    return found
