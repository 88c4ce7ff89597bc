"""Count the items of the stream, each exactly once.

A change can come again: in the same batch or another one, split otherwise, to two consumers at a time. So the table
decides: one transaction marks the items, on condition that they are not marked yet, and adds what they come to. Either
both happen or neither, however often it is tried.
"""

import random as chance
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from dynashard.entity import Entity
from dynashard.errors import DynashardError, TransactionRefusedError
from dynashard.service import Dynashard
from dynashard.transactions import Create, Update
from dynashard_patterns.changes import Change
from dynashard_patterns.rollups.declaration import Counted, Summing
from dynashard_patterns.rollups.packing import Pack, packed

E = TypeVar("E", bound=Entity)

MARKED_FOR: Final = timedelta(days=7)
"""How long a mark is kept: a stream keeps a change for 24 hours, and its delivery may take some days more."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many items were counted now, and how many were known, because they had been counted before."""

    counted: int = 0
    known: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.counted + other.counted, self.known + other.known)


class ItemCounter(Generic[E]):
    """Counts items into roll-ups.

    Args:
        db: the entities.
        roll_ups: what is summed up.
        clock: wall clock, in epoch seconds.
        random: draws the part of the rows that this one adds to, from zero to below one. Those of other
            processes mostly draw others, so that they seldom meet; a table with one counter has one part a row.
    """

    def __init__(
        self,
        db: Dynashard,
        roll_ups: Summing[E],
        *,
        clock: Callable[[], float] = time.time,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self._db = db
        self._roll_ups = roll_ups
        self._clock = clock
        self._slot = int(random() * roll_ups.spread)
        self._marks = db.collection(Counted)

    def handle(self, changes: Sequence[Change[Any]]) -> None:
        """Count created items; other changes count nothing.

        Raises:
            DynashardError: some of it could not be counted. What was counted is not counted again when all of it
                comes again.

        Cost: as `count`.
        """
        made = (each.new for each in changes if each.kind == "created" and each.entity is self._roll_ups.of)
        self.count([item for item in made if item is not None])

    def count(self, items: Iterable[E]) -> Tally:
        """Count items that have not been counted yet.

        Returns:
            How many of them were counted now, and how many before.

        Raises:
            DynashardError: the first that kept a transaction from being done; all others were tried.

        Cost: 2 write units an item and 2 a row, in transactions of up to about 90 items; for each in which some were
        counted before, 1 read unit an item and 2 round trips more.
        """
        total, failed = Tally(), None
        for pack in packed(self._roll_ups, items):
            try:
                total += self._count(pack)
            except DynashardError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return total

    def _count(self, pack: Pack[E]) -> Tally:
        known = 0
        while pack.items:
            try:
                self._db.transact(*self._marking(pack), *self._adding(pack))
            except TransactionRefusedError as refused:
                # Marks come first; everything else can only be in conflict.
                if refused.step >= len(pack.items):
                    raise
                fresh = self._unmarked(pack, list(pack.items)[refused.step])
                known += len(pack.items) - len(fresh)
                [pack] = list(packed(self._roll_ups, fresh)) or [Pack()]
            else:
                return Tally(len(pack.items), known)
        return Tally(0, known)

    def _marking(self, pack: Pack[E]) -> list[Create]:
        until = datetime.fromtimestamp(self._clock(), UTC) + MARKED_FOR
        return [Create(Counted(id=mark, expires_at=until)) for mark in pack.items]

    def _adding(self, pack: Pack[E]) -> list[Update]:
        return [
            Update(row.model, row.fields(self._slot), set=row.stamp(), add=values, missing="create")
            for row, values in pack.rows.items()
        ]

    def _unmarked(self, pack: Pack[E], met: str) -> list[E]:
        """The items without a mark, of which one is known to have one."""
        left = [mark for mark in pack.items if mark != met]
        found = self._marks.batch_get([{"id": mark} for mark in left], consistent=True)
        return [pack.items[mark] for mark, stored in zip(left, found, strict=True) if stored is None]
