"""Find and repair edges whose two ends, or whose counters, do not agree.

Transactions keep them in agreement. Repair is for changes without transactions: a restored backup, items deleted by
hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, NamedTuple

from dynashard import Dynashard
from dynashard.entity import Undecodable
from dynashard.errors import TransactionRefusedError
from dynashard.reads import Scan
from dynashard.repository import Repository, Store
from dynashard.transactions import Check, Create, Step, Transaction, Update
from dynashard_patterns.edges.declaration import E, EdgeCount, Edges, K, Way
from dynashard_patterns.edges.store import WAYS, EdgeStore

_TOGETHER: Final = 100
_TRIES: Final = 3


class Miscount(NamedTuple):
    """What a counter says, and how many edges there are."""

    counted: int
    edges: int

    @property
    def off(self) -> int:
        """By how much the counter is too high; below zero if it is too low."""
        return self.counted - self.edges


@dataclass(frozen=True, slots=True)
class Drift(Generic[E]):
    """What was found at a node.

    Attributes:
        node: the node.
        halves: edges whose other half is missing, as `way.other`, with that half.
        counted: the counters that are wrong, by way.
        mended: whether all of it was mended. False if it was only looked for, or edges came and went all the time.
        undecodable: stored halves and slots of counters that do not fit their entities. Nothing is said about their
            edges, nor about a counter if one of its slots or of the edges that it counts is among them.
    """

    node: str
    halves: Mapping[str, E]
    counted: Mapping[str, Miscount]
    mended: bool
    undecodable: Sequence[Undecodable] = ()

    @property
    def none(self) -> bool:
        """Whether everything agrees, as far as it can be read."""
        return not self.halves and not self.counted


class EdgeRepair(Generic[E]):
    """Compares and repairs the edges of single nodes."""

    def __init__(self, store: Store, edges: Edges[E], at: EdgeStore[E]) -> None:
        self._store = store
        self._edges = edges
        self._at = at
        self._items: Repository[E] = Repository(store, edges.model)

    @staticmethod
    def on(db: Dynashard, edges: Edges[K]) -> "EdgeRepair[K]":
        """Open what compares and repairs the edges of one kind. Costs nothing."""
        return EdgeRepair(db.store, edges, EdgeStore.on(db, edges))

    def check(self, tenant_id: str, node: str) -> Drift[E]:
        """Return what does not agree at a node. Edges that come and go meanwhile may be reported.

        A half that is stored and does not fit is not missing, and a counter of such edges is not compared.

        Cost: 1 read unit for each 4 KB of the node's edges, and 1 for the other half of each; 2 round trips for 100.
        """
        return self._drift(tenant_id, node, mend=False)

    def repair(self, tenant_id: str, node: str) -> Drift[E]:
        """Write the missing halves of a node's edges, then set its counters right.

        Right under traffic: a half is written only while its other half exists, and a counter only if none of its
        slots has changed since before the edges were counted, which every edge that comes or goes changes.

        Returns:
            What was found.

        Cost: as `check`, twice, and a transaction for each half and for each counter that is off.
        """
        return self._drift(tenant_id, node, mend=True)

    def _drift(self, tenant_id: str, node: str, *, mend: bool) -> Drift[E]:
        halves: dict[str, E] = {}
        unread: set[Undecodable] = set()
        settled = True
        for way in WAYS:
            for there, missing in self._halves(self._at.scan(tenant_id, node, way), unread):
                halves[f"{there.way}.{there.other}"] = missing
                settled = mend and self._at.complete(there, missing) and settled
        counted: dict[str, Miscount] = {}
        counts = self._edges.counts
        for way in WAYS:
            if counts is None:
                break
            found, done = self._recount(counts, tenant_id, node, way, unread, mend=mend)
            if found.off:
                counted[self._edges.called(way)] = found
            settled = done and settled
        undecodable = sorted(unread, key=lambda each: (each.partition_key, each.sort_key))
        return Drift(node, dict(sorted(halves.items())), counted, settled and mend, undecodable)

    def _halves(self, edges: Scan[E], unread: set[Undecodable]) -> Iterator[tuple[E, E]]:
        """Edges whose other half is not there, with that. `unread` gets the halves that do not fit."""
        while some := list(islice(edges, _TOGETHER)):
            others = [self._at.other_half(edge) for edge in some]
            found = self._items.batches.get(others, consistent=True)
            unread.update(found.undecodable)
            for at, (edge, other) in enumerate(zip(some, others, strict=True)):
                if found[at] is None and at not in found.left_out:
                    yield edge, other
        unread.update(edges.undecodable)

    def _recount(
        self, counts: type[EdgeCount], tenant_id: str, node: str, way: Way, unread: set[Undecodable], *, mend: bool
    ) -> tuple[Miscount, bool]:
        """Return what a counter says and should say, and whether it was set right, or was right.

        If a slot or an edge does not fit, the numbers are not known: the counter is taken for right, and `unread` gets
        what does not fit.
        """
        key = {"tenant_id": tenant_id, "node": node, "way": self._edges.called(way)}
        keys = self._edges.counter(way).keys(key)
        found = Miscount(0, 0)
        for _ in range(_TRIES):
            slots = Repository(self._store, counts).batches.get(keys, consistent=True)
            # Counted twice: a transaction shows item by item, so that one count might miss an edge that comes just now.
            scans = [self._at.scan(tenant_id, node, way) for _ in range(2)]
            there = {sum(1 for _ in scan) for scan in scans}
            if unfit := [*slots.undecodable, *(each for scan in scans for each in scan.undecodable)]:
                unread.update(unfit)
                return Miscount(0, 0), True
            if len(there) > 1:
                continue
            found = Miscount(sum(item.count for item in slots if item is not None), there.pop())
            if found.off == 0 or not mend:
                return found, found.off == 0
            if self._corrected(counts, keys, slots, -found.off):
                return found, True
        return found, False

    def _corrected(
        self, counts: type[EdgeCount], keys: Sequence[dict[str, Any]], slots: Sequence[EdgeCount | None], amount: int
    ) -> bool:
        """Add to the first slot if all slots are as they were read; whether they were."""
        first, *others = slots
        revisions = [item.revision if item else None for item in others]
        steps: list[Step] = [Check(counts, key, revision) for key, revision in zip(keys[1:], revisions, strict=True)]
        if first is None:
            steps.append(Create(counts(**keys[0], count=amount)))
        else:
            steps.append(Update(counts, keys[0], add={"count": amount}, if_match=first.revision))
        try:
            Transaction(self._store, steps).run()
        except TransactionRefusedError:
            return False
        return True
