"""Checks of data derived from items: copies, edges and their counts, roll-ups, attachments.

Each package repairs its own data; this module calls them and reports what they find.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, Final

from dynashard.entity import EntityDefinition, definition
from dynashard.repository.conditions import is_live
from dynashard.schema import EXPIRES_AT
from dynashard.service import Dynashard
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.sweep import missing_pieces, sweep
from dynashard_patterns.copies import MaterializedCopies
from dynashard_patterns.edges import EdgeRepair, Edges
from dynashard_patterns.rollups import Drift, Level, RollUpRepair, RollUps
from dynashard_tools.verify.findings import Finding, Kind
from dynashard_tools.verify.stored import key_text

_HOUR: Final = timedelta(hours=1)
_LOOKS: Final = 2
"""How often copies are compared before a difference is reported, because a change may still be on its way to them."""


def copies(
    db: Dynashard, declared: MaterializedCopies[Any, Any], partition: Mapping[str, Any] | None, *, mend: bool
) -> Iterator[Finding | int]:
    """Findings about copies, and how many items have been looked at."""
    last = None
    for _ in range(1 if mend else _LOOKS):
        for last in (declared.repair if mend else declared.check)(db, partition):
            yield last.sources + last.copies
        if last is None or not last.drift.total:
            break
    if last is None:
        return
    drift = last.drift
    if drift.total:
        detail = f"{drift.missing} missing, {drift.wrong} wrong, {drift.extra} too many"
        yield Finding(Kind.COPY, declared.name, detail, drift.total, mended=mend)
    for reason in last.reasons:
        yield Finding(Kind.COPY, declared.name, f"left out: {reason}")


@dataclass
class Nodes:
    """The nodes whose edges or counters were found in the table."""

    db: Dynashard
    declared: Edges[Any]
    mend: bool = False
    _met: set[tuple[str, str]] = field(default_factory=set)

    def met(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record the node of a stored item."""
        if entity.model in (self.declared.model, self.declared.counts):
            fields = entity.decode_fields(item, ["tenant_id", "node"])
            self._met.add((fields["tenant_id"], fields["node"]))

    def check(self) -> Iterator[Finding | int]:
        """Findings about the nodes that were met, and how many have been looked at. Cost: as `EdgeRepair.check`."""
        repair = EdgeRepair.on(self.db, self.declared)
        for number, (tenant, node) in enumerate(sorted(self._met), 1):
            drift = repair.check(tenant, node)
            if not drift.none:
                # Edges that come and go may look wrong for a moment.
                drift = (repair.repair if self.mend else repair.check)(tenant, node)
            if drift.halves:
                detail = f"the other half is missing of {', '.join(drift.halves[:5])}"
                yield Finding(Kind.EDGE, f"{tenant} {node}", detail, len(drift.halves), mended=drift.mended)
            for way, off in drift.counted.items():
                yield Finding(Kind.COUNT, f"{tenant} {node}", f"{way} is off by {off:+}", mended=drift.mended)
            yield number


@dataclass
class _Span:
    """The times of the items of one tenant.

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


@dataclass
class Times:
    """The tenants and times of the items that a roll-up counts."""

    db: Dynashard
    declared: RollUps[Any]
    clock: Callable[[], float]
    mend: bool = False
    _met: dict[tuple[tuple[str, Any], ...], _Span] = field(default_factory=dict)

    def met(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record the time of a stored item."""
        if entity is not definition(self.declared.of) or self.declared.by_time is None:
            return
        at = self.declared.at
        names = [name for name in entity.indexes[self.declared.by_time].partition.fields if name != at]
        fields = entity.decode_fields(item, [*names, at])
        of, time = tuple((name, fields[name]) for name in names), fields[at]
        expires = float(item[EXPIRES_AT]["N"]) if EXPIRES_AT in item else None
        self._met.setdefault(of, _Span(time, time, expires)).add(time, expires)

    def check(self) -> Iterator[Finding | int]:
        """Findings about roll-ups, and how many items have been read.

        Cost: as `RollUpRepair.check` of the hours with items.

        Spans whose items may have expired are skipped, because they can no longer be compared.
        """
        for of, span in sorted(self._met.items(), key=itemgetter(0)):
            start, end = self._start(span.first, span.ends), Level.MONTH.end(Level.MONTH.start(span.last))
            repair = RollUpRepair(self.db, self.declared, dict(of), clock=self.clock)
            lacking = _lacking(repair, start, end, span.hours)
            if lacking:
                # What was created just now is counted a moment later.
                lacking = _lacking(repair, start, end, span.hours)
            left = None
            if lacking and self.mend:
                repair.repair(start, end, hours=span.hours)
                left = {drift.row for drift in _lacking(repair, start, end, span.hours)}
            for drift in lacking:
                yield Finding(
                    Kind.ROLL_UP, row_text(drift), sums_text(drift), mended=left is not None and drift.row not in left
                )
            yield 1

    def _start(self, first: datetime, ends: float | None) -> datetime:
        """Return the start of the longest span with the first item in which no item can have expired."""
        left = None if ends is None else timedelta(seconds=ends - self.clock())
        for level, longest in ((Level.MONTH, timedelta(days=31)), (Level.DAY, timedelta(days=1)), (Level.HOUR, _HOUR)):
            if left is None or left > longest:
                return level.start(first).astimezone(UTC)
        return (Level.HOUR.start(first) + _HOUR).astimezone(UTC)


def _lacking(repair: RollUpRepair[Any], start: datetime, end: datetime, hours: Collection[datetime]) -> list[Drift]:
    return [drift for drift in repair.check(start, end, hours=hours) if drift.lacking]


def row_text(drift: Drift) -> str:
    """Name the row of a roll-up that differs."""
    key = ", ".join(f"{name} {value}" for name, value in drift.row.key)
    return f"{definition(drift.row.model).name} {key}"


def sums_text(drift: Drift) -> str:
    """Describe how a row of a roll-up differs."""
    return ", ".join(f"{name} {value} instead of {drift.expected.get(name, 0)}" for name, value in drift.stored.items())


def attachments(db: Dynashard, entity: EntityDefinition[Any], item: Wire) -> Iterator[Finding]:
    """Findings about the attachments of a stored item. Cost: what reading their pieces costs."""
    if not entity.attachments or not is_live(item, db.store.now()):
        return
    for name, lacking in missing_pieces(db.store, entity, item).items():
        detail = f"{lacking} of the pieces of {name} are not stored: write it again, or remove it"
        yield Finding(Kind.ATTACHMENT, key_text(item), detail, lacking)


def leftovers(db: Dynashard, entity: EntityDefinition[Any], *, mend: bool) -> Iterator[Finding | int]:
    """Findings about versions of attachments that no item points to, and how many versions have been looked at.

    Cost: as `dynashard_patterns.attachments.sweep`.
    """
    last = None
    for last in sweep(db.store, entity, dry=not mend):
        yield last.versions
    if last is not None and last.removed:
        detail = f"no item points to them; they have {last.pieces} pieces"
        yield Finding(Kind.LEFTOVER, entity.name, detail, last.removed, mended=mend)
