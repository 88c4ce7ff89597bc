"""Compare roll-ups with the items, which are the truth, and repair what differs while both keep changing.

A mark and what it adds are written in one transaction. So while a row does not change, it agrees with the items that
are marked, or it is wrong. To repair it, its parts are read first; then the items, each of which is marked; then the
row is set to their sum, on condition that no part has changed since. If the stream had counted an item before, the
item is in the parts. If the stream counts it meanwhile, the condition fails. If it counts it later, it finds the mark.

So the stream counts an item that a repair has marked in none of its rows. Those within the time that was read are
repaired as well, and then those of longer spans, such as the month of a repaired day: their items are read, and a row
that lacks some of them is set to their sum.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

from dynashard.entity import Entity, Undecodable, definition
from dynashard.errors import InvalidQueryError, TransactionRefusedError
from dynashard.keys import TemplateField
from dynashard.service import Dynashard
from dynashard.transactions import Check, Create, Step, Update
from dynashard_patterns.rollups.counting import MARKED_FOR
from dynashard_patterns.rollups.declaration import LEVEL, OWN_FIELDS, START, Counted, Row
from dynashard_patterns.rollups.levels import LAST, Level
from dynashard_patterns.rollups.packing import Sums, add_up
from dynashard_patterns.rollups.reading import Rows, counts_of, parts_among
from dynashard_patterns.rollups.roll_ups import RollUps

E = TypeVar("E", bound=Entity)

_TRIES: Final = 5
_MARKED_TOGETHER: Final = 400


@dataclass(frozen=True, slots=True)
class Drift:
    """A row that differs from the items: its stored sums, and those that are expected by the items."""

    row: Row
    stored: Mapping[str, int | Decimal]
    expected: Mapping[str, int | Decimal]

    @property
    def lacking(self) -> bool:
        """Whether any of its sums is below that of the items."""
        return any(self.expected.get(name, 0) > value for name, value in self.stored.items())


@dataclass(frozen=True, slots=True)
class RepairResult:
    """How many rows were mended, were kept although their sums are above those of the items, and changed too often."""

    mended: int = 0
    kept: int = 0
    left: int = 0


class RollUpRepair(Generic[E]):
    """Compares and repairs the roll-ups of one tenant.

    Args:
        db: the entities.
        roll_ups: what is summed up; with an index `by_time`.
        of: the fields of the index's partition besides the time, such as `{"tenant_id": "abc"}`.
        clock: wall clock, in epoch seconds.
        advance: called after every hour with the number of items that were read.
        left_out: called with the items that do not fit their declaration, which are not summed up, and with such parts
            of rows, which are not compared; `check` may name one twice.

    Raises:
        InvalidQueryError: there is no such index, or its partition has other fields.
    """

    def __init__(
        self,
        db: Dynashard,
        roll_ups: RollUps[E],
        of: Mapping[str, Any],
        *,
        clock: Callable[[], float] = time.time,
        advance: Callable[[int], None] = lambda _: None,
        left_out: Callable[[Iterable[Undecodable]], None] = lambda _: None,
    ) -> None:
        if roll_ups.by_time is None:
            raise InvalidQueryError(f"the roll-ups {roll_ups.name} name no index that lists their items by time")
        self._index = definition(roll_ups.of).indexes[roll_ups.by_time]
        wanted = set(self._index.partition.fields) - {roll_ups.at}
        if wanted != of.keys():
            raise InvalidQueryError(f"the items of {roll_ups.name} are listed by {', '.join(sorted(wanted))}")
        self._db, self._roll_ups, self._of = db, roll_ups, dict(of)
        self._clock, self._advance, self._left_out = clock, advance, left_out
        self._undecodable = 0
        self._longer: set[Row] = set()

    def check(self, start: datetime, end: datetime, *, hours: Collection[datetime] | None = None) -> Iterator[Drift]:
        """The rows that differ from the items, of all spans that lie within a time.

        Items of the last moments may be on their way to the roll-ups, or to the index.

        Args:
            start: a full hour.
            end: a full hour.
            hours: the only hours whose items are read, by their starts, if the caller knows which hours have items. An
                item of another hour makes its rows say too much. If None, all hours are read.

        Cost: what reading the items of the time and their roll-ups costs: 0.5 read units for 4 KB of items, 1 for 4 KB
        of roll-ups; at least one Query a shard for each of the hours, or for each day if they are not given. Memory for
        the sums of an hour, and of each longer span.
        """
        sums: dict[Row, Sums] = {}
        read = 0
        for hour, filled in self._hours(start, end, hours):
            finish = Level.HOUR.end(hour)
            for item in self._items(hour, finish) if filled else ():
                read += 1
                for row in self._roll_ups.rows(item):
                    if row.start >= start and row.end <= end:
                        add_up(sums.setdefault(row, {}), self._roll_ups.add(item))
            self._advance(read)
            due = {row: values for row, values in sums.items() if row.end <= finish}
            for row in due:
                del sums[row]
            yield from self._differing(due, hour)

    def repair(
        self, start: datetime, end: datetime, *, lower: bool = False, hours: Collection[datetime] | None = None
    ) -> RepairResult:
        """Repair what `check` finds, and rows of longer spans that lack the same items; see `mend`.

        Args:
            start: a full hour.
            end: a full hour.
            hours: as in `check`.
            lower: also lower rows that are above the items. Do not use it if items were deleted or have expired,
                because what they had added would be lost. Nothing is lowered if items do not fit their declaration.

        Cost: as `check` and `mend`.
        """
        drifts, left = self.mend(list(self.check(start, end, hours=hours)), lower=lower)
        kept = sum(1 for drift in drifts if drift.row in left and not drift.lacking)
        mended = sum(1 for drift in drifts if drift.row not in left)
        return RepairResult(mended=mended, kept=kept, left=len(left) - kept)

    def mend(self, drifts: Sequence[Drift], *, lower: bool = False) -> tuple[Sequence[Drift], set[Row]]:
        """Correct rows that `check` of this object has found, and rows of longer spans that lack the same items.

        Args:
            drifts: how the rows differ.
            lower: as in `repair`. It concerns only these rows.

        Returns:
            All of these rows, and those that were not corrected; see `correct`.

        Cost: for every hour, day or month with rows to mend, its items once more, 1 read unit for each of them, 1 write
        unit for each that was not counted, and 2 for each part of such a row. If any of them was not counted, also the
        items of the longer spans with it, 0.5 read units for 4 KB.
        """
        left = self.correct(drifts, lower=lower)
        for level in Level:
            longer = list(self._lacking(level))
            left |= self.correct(longer)
            drifts = [*drifts, *longer]
        return drifts, left

    def _lacking(self, level: Level) -> Iterator[Drift]:
        """The rows of a level that lack items, of those to which items were not added although these are now marked."""
        spans: dict[tuple[datetime, datetime], dict[Row, Sums]] = defaultdict(dict)
        for row in [each for each in self._longer if each.level is level]:
            spans[row.start, row.end][row] = {}
            self._longer.discard(row)
        for (start, end), sums in spans.items():
            for item in self._items(start, end):
                for row in self._roll_ups.rows(item):
                    if row in sums:
                        add_up(sums[row], self._roll_ups.add(item))
            last = Level.HOUR.start(end - timedelta(microseconds=1))
            yield from (drift for drift in self._differing(sums, last) if drift.row in sums and drift.lacking)

    def correct(self, drifts: Iterable[Drift], *, lower: bool = False) -> set[Row]:
        """Correct rows that `check` of this object has found.

        Args:
            drifts: how the rows differ.
            lower: as in `repair`.

        Returns:
            The rows that were not corrected: those that count more than the items, unless `lower`, and those that
            others changed again and again.

        Cost: that of `mend` but for longer spans.
        """
        left: set[Row] = set()
        spans: dict[tuple[datetime, datetime], list[Row]] = defaultdict(list)
        lower = lower and not self._undecodable
        for drift in drifts:
            if drift.lacking or lower:
                level = max(drift.row.level, Level.HOUR, key=list(Level).index)
                begin = level.start(drift.row.start)
                spans[begin, level.end(begin)].append(drift.row)
            else:
                left.add(drift.row)
        for (begin, finish), rows in spans.items():
            left |= self._correct(rows, begin, finish, lower=lower)
        return left

    def _correct(self, rows: list[Row], start: datetime, end: datetime, *, lower: bool) -> set[Row]:
        left = set(rows)
        for _ in range(_TRIES):
            parts = {row: self._parts(row) for row in left}
            truths, others = self._marked_sums(left, start, end)
            right = {row for row in left if self._set(row, parts[row], truths.get(row, {}), lower=lower)}
            left = (left - right) | {row for row in others if row.start >= start and row.end <= end}
            self._longer = (self._longer - right) | (others - left)
            if not left:
                break
        return left

    def _parts(self, row: Row) -> list[Any]:
        """The parts of a row as they are now; None for those that there are not."""
        keys = [row.fields(slot) for slot in range(self._roll_ups.spread)]
        return self._db.collection(row.model).batch_get(keys, consistent=True)

    def _marked_sums(self, rows: set[Row], start: datetime, end: datetime) -> tuple[dict[Row, Sums], set[Row]]:
        """Return what the items come to, all of which are marked as counted before this returns, and further rows.

        Those are rows of items that had no mark, which nothing else will add them to now.
        """
        sums: dict[Row, Sums] = {}
        others: set[Row] = set()
        met: dict[str, E] = {}
        for item in self._items(start, end):
            concerned = [row for row in self._roll_ups.rows(item) if row in rows]
            for row in concerned:
                add_up(sums.setdefault(row, {}), self._roll_ups.add(item))
            if concerned:
                met[self._roll_ups.mark(item)] = item
            if len(met) >= _MARKED_TOGETHER:
                others |= self._mark(met)
                met.clear()
        others |= self._mark(met)
        return sums, others - rows

    def _mark(self, items: Mapping[str, E]) -> set[Row]:
        """Mark the items that have no mark as counted, by the ids of their marks; return the rows of these."""
        marks = self._db.collection(Counted)
        stored = marks.batch_get([{"id": mark} for mark in items], consistent=True)
        fresh = [mark for mark, found in zip(items, stored, strict=True) if found is None]
        until = datetime.fromtimestamp(self._clock(), UTC) + MARKED_FOR
        marks.batch_write(put=[Counted(id=mark, expires_at=until) for mark in fresh])
        return {row for mark in fresh for row in self._roll_ups.rows(items[mark])}

    def _set(self, row: Row, parts: list[Any], truth: Sums, *, lower: bool) -> bool:
        """Set a row to the truth, unless a part of it has changed; whether it is right now."""
        stored: Sums = {}
        for part in parts:
            if part is not None:
                add_up(stored, counts_of(part))
        missing = {name: truth.get(name, 0) - stored.get(name, 0) for name in truth.keys() | stored.keys()}
        missing = {name: value for name, value in missing.items() if value > 0 or (lower and value < 0)}
        if not missing:
            return True
        chosen = next((slot for slot, part in enumerate(parts) if part is not None), 0)
        steps: list[Step] = [_setting(row, chosen, parts[chosen], missing)]
        for slot, part in enumerate(parts):
            if slot != chosen:
                steps.append(Check(row.model, row.fields(slot), None if part is None else part.revision))
        try:
            self._db.transact(*steps)
        except TransactionRefusedError:
            return False
        return True

    def _items(self, start: datetime, end: datetime) -> Generator[E]:
        """The items of a time that lies within one logical partition of the index."""
        roll_ups, index = self._roll_ups, self._index
        for day in Level.DAY.within(Level.DAY.start(start), end):
            begin, finish = max(start, day), min(end, Level.DAY.end(day))
            partition = {**self._of, **({roll_ups.at: begin} if roll_ups.at in index.partition.fields else {})}
            first = next(part for part in index.sort.parts if isinstance(part, TemplateField))
            lower, upper = (index.sort.field_text(first, {roll_ups.at: at}) for at in (begin, finish))
            found = self._db.collection(roll_ups.of).scan(
                partition, index=index.name, start=lower, end=None if finish == LAST else upper
            )
            yield from found
            self._undecodable += len(found.undecodable)
            self._left_out(found.undecodable)

    def _hours(
        self, start: datetime, end: datetime, known: Collection[datetime] | None
    ) -> Iterator[tuple[datetime, bool]]:
        """The full hours of a time, and whether they may have items."""
        empty = datetime.min.replace(tzinfo=UTC)
        for hour in Level.HOUR.within(start, end):
            if known is not None:
                yield hour, hour in known
                continue
            day = Level.DAY.start(hour)
            if hour in (start, day) and not self._any(hour, min(end, Level.DAY.end(day))):
                empty = day
            yield hour, day != empty

    def _any(self, start: datetime, end: datetime) -> bool:
        """Whether there are items of a time: a day without any costs one Query a shard, not one for every hour."""
        with closing(self._items(start, end)) as items:
            return next(items, None) is not None

    def _differing(self, sums: dict[Row, Sums], hour: datetime) -> Iterator[Drift]:
        """The rows that differ, of all spans that end with an hour or within it."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in sums:
            if row.expires is None or row.expires > now:
                groups[_group(row)].append(row)
        for (model, level, by), rows in groups.items():
            found = self._found(level, dict(by), hour)
            stored = dict(self._stored(model, found))
            known = {row for row in rows if not parts_among(found.undecodable, definition(model), dict(row.key))}
            for row in sorted(known | stored.keys(), key=lambda row: row.start):
                truth = {name: value for name, value in sums.get(row, {}).items() if value}
                says = stored.get(row, {})
                if truth != {name: value for name, value in says.items() if value}:
                    names = sorted(truth.keys() | says.keys())
                    yield Drift(row, {name: says.get(name, 0) for name in names}, truth)

    def _found(self, level: Level, by: Mapping[str, Any], hour: datetime) -> Rows:
        start, end = level.start(hour), Level.HOUR.end(hour)
        found = self._roll_ups.read(self._db, by, level=level, start=start, end=end, consistent=True, strict=False)
        self._left_out(found.undecodable)
        return found

    def _stored(self, model: type[Entity], found: Rows) -> Iterator[tuple[Row, Sums]]:
        for part in found:
            key = {name: getattr(part, name) for name in (*self._roll_ups.by(model), LEVEL, START)}
            yield Row(model, tuple(sorted(key.items())), None), dict(counts_of(part))


def _setting(row: Row, slot: int, part: Any, missing: Mapping[str, int | Decimal]) -> Step:
    fields = row.fields(slot)
    if part is None:
        return Create(row.model(**fields, **missing, **row.stamp()))
    after = {name: getattr(part, name) + value for name, value in missing.items()}
    return Update(row.model, fields, set=after, if_match=part.revision)


def _group(row: Row) -> tuple[Any, ...]:
    """Rows with equal groups are read together."""
    entity = definition(row.model)
    before = entity.sort_fields[: entity.sort_fields.index(START)]
    fields = set(entity.partition_fields) | set(before)
    return row.model, row.level, tuple((name, value) for name, value in row.key if name in fields - OWN_FIELDS)
