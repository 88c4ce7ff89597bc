"""Checks that roll-ups match the items that they sum up."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition, Undecodable, definition, expiry
from dynashard.schema import EXPIRES_AT
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.rollups import Drift, Level, RollUpRepair, RollUps
from dynashard_tools.verify.findings import Change, Finding, Kind, unreadable
from dynashard_tools.verify.parts import Check, Part, Sum

_HOUR: Final = timedelta(hours=1)


def group_fields(declared: RollUps[Any]) -> tuple[str, ...]:
    """Return the fields whose values name the items that are compared together, such as those of a tenant.

    They are empty if no index lists the items by time.
    """
    if declared.by_time is None:
        return ()
    fields = definition(declared.of).indexes[declared.by_time].partition.fields
    return tuple(name for name in fields if name != declared.at)


@dataclass(frozen=True, slots=True)
class Period:
    """A period whose roll-ups are compared, of the items of one group.

    Attributes:
        group: the values of `group_fields`.
        start, end: full hours; the end is exclusive.
    """

    group: Mapping[str, Any]
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the rows of some roll-ups are compared, and what is done about those that differ.

    Attributes:
        mend: raise rows that count less than the items.
        strict: report rows that count more than the items.
        lower: report rows that count more than the items, and lower them if `mend`.
    """

    db: Dynashard
    declared: RollUps[Any]
    clock: Callable[[], float]
    mend: bool = False
    strict: bool = False
    lower: bool = False

    def compare(
        self, period: Period, advance: Callable[[int], None], hours: Collection[datetime] | None = None
    ) -> Iterator[Finding]:
        """Compare the rows of a period; `hours` as of `RollUpRepair.check`."""
        left_out: list[Undecodable] = []
        repair = RollUpRepair(
            self.db, self.declared, period.group, clock=self.clock, advance=advance, left_out=left_out.extend
        )
        wrong = self._differing(repair, period, hours)
        if wrong and not self.mend:
            # What was created just now is counted a moment later.
            wrong = self._differing(repair, period, hours)
        found, left = repair.mend(wrong, lower=self.lower) if self.mend else (wrong, {each.row for each in wrong})
        for drift in found:
            yield _finding(drift, mended=drift.row not in left)
        yield from map(unreadable, left_out)

    def _differing(self, repair: RollUpRepair[Any], period: Period, hours: Collection[datetime] | None) -> list[Drift]:
        found = repair.check(period.start, period.end, hours=hours)
        return [drift for drift in found if drift.lacking or self.strict or self.lower]


def _finding(drift: Drift, *, mended: bool) -> Finding:
    key = ", ".join(f"{name} {value}" for name, value in drift.row.key)
    sums = {
        name: (stored, expected)
        for name, stored in drift.stored.items()
        if stored != (expected := drift.expected.get(name, 0))
    }
    detail = ", ".join(f"{name} {stored} instead of {expected}" for name, (stored, expected) in sums.items())
    changes = {name: Change({"N": str(stored)}, {"N": str(expected)}) for name, (stored, expected) in sums.items()}
    kind = Kind.ROLL_UP if drift.lacking else Kind.ROLL_UP_ABOVE
    return Finding(kind, f"{definition(drift.row.model).name} {key}", detail, mended=mended, changes=changes)


@dataclass(frozen=True, slots=True)
class PeriodCheck(Check):
    """Compares the roll-ups of a period with its items, which it reads by their index.

    Cost: as `RollUpRepair.check`; without `mend` twice if rows differ.
    """

    part: ClassVar[Part] = Part.ROLLUPS
    repairs: ClassVar[str] = "correct rows of roll-ups"

    comparison: Comparison
    period: Period

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find rows that differ from the items of the period."""
        return self.comparison.compare(self.period, advance)


@dataclass
class _Span:
    """The times of the items of one group.

    Attributes:
        ends: when the first item expires, in epoch seconds; None if it does not.
        hours: the starts of the hours that have items.
    """

    first: datetime
    last: datetime
    ends: float | None
    hours: set[datetime] = field(default_factory=set)

    def add(self, time: datetime, expires: float | None) -> None:
        """Record the time of an item, and when it expires."""
        if time < self.first:
            self.first, self.ends = time, expires
        self.last = max(self.last, time)
        self.hours.add(Level.HOUR.start(time))

    def period(self, group: Mapping[str, Any], now: float) -> Period:
        """Return the longest period with these items in which no item can have expired."""
        return Period(group, self._start(now), Level.MONTH.end(Level.MONTH.start(self.last)))

    def _start(self, now: float) -> datetime:
        left = None if self.ends is None else timedelta(seconds=self.ends - now)
        for level, longest in ((Level.MONTH, timedelta(days=31)), (Level.DAY, timedelta(days=1)), (Level.HOUR, _HOUR)):
            if left is None or left > longest:
                return level.start(self.first).astimezone(UTC)
        return Level.HOUR.end(Level.HOUR.start(self.first))


@dataclass
class RollUpsCheck(Check):
    """Compares the roll-ups of the hours in which items were read.

    Spans whose items may have expired are skipped, because they can no longer be compared.

    Cost: as `RollUpRepair.check` of the hours with items; without `mend` twice if rows differ.
    """

    part: ClassVar[Part] = Part.ROLLUPS
    reads_items: ClassVar[bool] = True
    repairs: ClassVar[str] = PeriodCheck.repairs

    comparison: Comparison
    _spans: dict[tuple[tuple[str, Any], ...], _Span] = field(default_factory=dict)

    def note(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record the time of a stored item."""
        declared = self.comparison.declared
        if entity is not definition(declared.of):
            return
        names = group_fields(declared)
        fields = entity.decode_fields(item, [*names, declared.at])
        group, time = tuple((name, fields[name]) for name in names), fields[declared.at]
        expires = expiry(item) if EXPIRES_AT in item else None
        self._spans.setdefault(group, _Span(time, time, expires)).add(time, expires)

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find rows that differ from the items."""
        read = Sum(advance)
        for group, span in sorted(self._spans.items(), key=itemgetter(0)):
            period = span.period(dict(group), self.comparison.clock())
            yield from self.comparison.compare(period, read.from_here(), span.hours)
