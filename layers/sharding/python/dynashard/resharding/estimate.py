"""What a resize takes at the mover's share: items, units, dollars and time.

Pure functions of what is stored. `stored_amount` says how that is counted cheaply, and how wrong it may be.
"""

from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any, Final

from dynashard.placement import UNSHARDED
from dynashard.resharding.progress import Pass
from dynashard.resharding.rates import Course
from dynashard.resharding.share import Share

WRITE_DOLLARS: Final = 0.625e-6
READ_DOLLARS: Final = 0.125e-6
"""A unit on demand in us-east-1."""
_KB: Final = 1024
_BLOCK: Final = 4096
_MARKER: Final = 64
"""The most bytes that a relocation marker adds to an item."""
_PASSES: Final = 3
"""Consistent reads of the shards that items leave: to move, to settle and to sweep."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What stands in the shards, or the table, that a resize reads.

    Attributes:
        items, bytes: how much, as estimated.
        error: two standard deviations of `items`; None if counting was cut short, so that there may be more.
        most: the most items that there can be; None if that is unknown.
    """

    items: int = 0
    bytes: float = 0.0
    error: int | None = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A shard that was counted: its items, their bytes as DynamoDB bills them, and whether the count is complete."""

    items: int
    bytes: float
    complete: bool


def stored_from(samples: list[Sample], shards: int, most: int | None = None) -> Stored:
    """Return what some shards hold by those that were counted. Equal parts of all items are expected in each.

    `most` bounds the items of all, such as the number of items in the table.
    """
    complete = [each for each in samples if each.complete]
    counted = complete or samples
    if not counted:
        return Stored()
    of_all = shards / len(counted)
    items = round(sum(each.items for each in counted) * of_all)
    size = sum(each.bytes for each in counted) * of_all
    if not complete:
        return Stored(items, size, None, most)
    return Stored(items, size, ceil(2 * sqrt(items * (of_all - 1))), None)


@dataclass(frozen=True, slots=True)
class EffortInputs:
    """What the effort of a resize depends on.

    Attributes:
        course: how its work is divided.
        shards: how many shards are read, each by one task at a time; 0 if nothing moves.
        entries: in how many indexes an item may stand.
        waits: seconds in which phases reach every client, and in which nothing else happens.
        creating: the share of the shards' write units with which callers create items.
        creating_seconds: for how long they create them where the mover finds them.
    """

    course: Course
    shards: int
    entries: int = 0
    waits: float = 0.0
    creating: float = 0.0
    creating_seconds: float = 0.0

    @property
    def moving(self) -> float:
        """The share of what is read that has another home, or another index key, after the resize."""
        origin, target = self.course.origin, self.course.target
        if self.course.rewrites or origin == UNSHARDED or target <= origin:
            return 1.0
        return 1.0 - origin / target


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a resize is expected to take.

    Attributes:
        origin, target: the counts.
        items: items that will move, or index entries that will be rewritten.
        error: two standard deviations of them; None if there are at least so many.
        most: the most that there can be, if only a bound is known. 0 with no items: they are not counted yet.
        item_bytes: the mean size of an item.
        write_units, read_units: what it consumes in all.
        dollars: their price on demand in us-east-1.
        seconds: until it is complete, markers deleted, at the mover's share.
        waiting: how many of these seconds are waits for phases to reach every client.
        part: the mover's share of each shard's units.
    """

    origin: int
    target: int
    items: int
    error: int | None
    most: int | None
    item_bytes: float
    write_units: float
    read_units: float
    dollars: float
    seconds: float
    waiting: float
    part: float

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON values."""
        return asdict(self)

    @property
    def text(self) -> str:
        """What it takes, as a sentence without its subject: `moves about 320,000 items ...`."""
        least = self.error is None
        about = "at least" if least else "about" if self.error else "up to" if self.most is not None else ""
        count = f"{about} {self.items:,} items".strip()
        if least and self.most is not None and self.most > self.items:
            count += f" and at most {self.most:,}"
        if not self.items and self.most is not None:
            return f"moves items that DynamoDB has not counted yet, and takes at least {lasting(self.seconds)}"
        if not self.items:
            return f"moves no items, and takes about {lasting(self.seconds)}"
        verb = "takes at least" if least else "takes about"
        return (
            f"moves {count}, consumes {self.write_units:,.0f} write and {self.read_units:,.0f} read units "
            f"(${self.dollars:,.2f} on demand), and {verb} {lasting(self.seconds)} at {self.part:.0%} of what a shard "
            "gives"
        )


def lasting(seconds: float) -> str:
    """Describe a duration: `40 seconds`, `22 minutes`, `3.5 hours`."""
    if seconds < 90:  # noqa: PLR2004 - units that people use
        return "1 second" if ceil(seconds) == 1 else f"{ceil(seconds)} seconds"
    return f"{ceil(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"  # noqa: PLR2004


def estimate(resize: EffortInputs, stored: Stored, share: Share) -> Estimate:
    """Return what a resize takes, if the mover uses all of its share and is not throttled."""
    course = resize.course
    # Without a size, as of a table that was described before its first items, an item is taken for 1 KB.
    size = stored.bytes / stored.items if stored.items and stored.bytes else float(_KB - _MARKER)
    arriving = 0.0
    if resize.shards and not course.rewrites:
        units = max(1, course.origin) * share.write_units * resize.creating_seconds
        arriving = resize.creating * units / ceil(size / _KB)
    read_bytes = (stored.items + arriving) * size
    items = (stored.items + arriving) * resize.moving if resize.shards else 0.0
    units = ceil((size + _MARKER) / _KB) * (1 + resize.entries)
    blocks = read_bytes / _BLOCK if resize.shards else 0.0
    if course.rewrites:
        # The table and the other indexes take one write of the item; this index deletes an entry and puts one.
        writes, reads = items * (units + 2 * ceil((size + _MARKER) / _KB)), blocks
    else:
        # A transaction takes twice the units, at the old home and at the new one; deleting the marker takes one.
        writes, reads = items * units * 5, blocks * _PASSES
    # The longest task has this part of the work.
    turns = ceil(resize.shards / course.workers) / resize.shards if resize.shards else 0.0
    seconds = resize.waits + turns * _working(course, writes, reads, share)
    factor = resize.moving
    return Estimate(
        origin=course.origin,
        target=course.target,
        items=round(items),
        error=None if stored.error is None else round(stored.error * factor),
        most=None if stored.most is None else round((stored.most + arriving) * factor),
        item_bytes=round(size, 1),
        write_units=round(writes),
        read_units=round(reads),
        dollars=writes * WRITE_DOLLARS + reads * READ_DOLLARS,
        seconds=round(seconds, 1),
        waiting=resize.waits,
        part=share.part,
    )


def _working(course: Course, writes: float, reads: float, share: Share) -> float:
    """Return the seconds in which a single task would consume so many units."""
    move, sweep = course.rate(Pass.MOVE, share), course.rate(Pass.SWEEP, share)
    if course.rewrites:
        return writes / move.writes + reads / move.reads
    one = reads / _PASSES / move.reads
    return writes * 0.8 / move.writes + writes * 0.2 / sweep.writes + _PASSES * one
