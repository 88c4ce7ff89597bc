"""Counters of edges in a table, as numbers that many writers add to at once.

A counter is a few items, its slots. A writer adds to a random one, and a reader sums them up ("sharded counters"). What
is added is a step of the transaction that writes the edge, so it is added exactly once, or not at all.
"""

from collections.abc import Mapping
from typing import Any

from dynashard.repository import Repository, Store
from dynashard.transactions import Update
from dynashard_patterns.edges.declaration import Slots


class SlotStore:
    """The counters of one way in a table, each named by the fields of its key but the slot. Safe between threads."""

    def __init__(self, store: Store, counters: Slots) -> None:
        self._store = store
        self._counters = counters
        self._items = Repository(store, counters.model)

    def adding(self, key: Mapping[str, Any], amount: int) -> Update:
        """Return the step of a transaction that adds to a counter, less than 0 to take away: to a slot drawn now.

        Cost: none; the step, 2 write units.
        """
        keys = self._counters.keys(key)
        drawn = keys[int(self._store.runtime.random() * len(keys))]
        return Update(self._counters.model, drawn, add={"count": amount}, missing="create")

    def total(self, key: Mapping[str, Any], *, consistent: bool = False) -> int:
        """Return what a counter says; 0 if nothing was ever added. A `consistent` read sees all that was acknowledged.

        Raises:
            UnprocessedError: a slot could not be read in time.
            UndecodableItemError: a slot does not fit its entity, so the sum would be wrong.

        Cost: 0.5 read units a slot, 1 if consistent; 1 round trip.
        """
        found = self._items.batches.get(self._counters.keys(key), consistent=consistent, strict=True)
        return sum(slot.count for slot in found if slot is not None)
