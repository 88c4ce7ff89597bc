"""Items that have moved while they are listed: marks are followed to the items they lead to.

A transaction becomes visible item by item to plain reads. So a mark that leads nowhere says nothing yet: both places
are read once more, in a transaction, before its item counts as absent.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import TransactionConflictError, UnprocessedError
from dynashard.reads.layout import Layout
from dynashard.repository import RetryPolicy
from dynashard.repository.conditions import is_marker, moved_to
from dynashard.routing import home, logical_partition_of
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.transport.interface import Call, Wire

BATCH: Final = 100
"""Keys of a BatchGetItem."""
PAIRS: Final = 5
"""Pairs of places that one TransactGetItems reads: however large items are, they stay below its 4 MB."""
_WAVE: Final = 16
_HOPS: Final = 4
"""How many marks may follow one another: an index may still show one of the change before."""

T = TypeVar("T")

StoredKey = tuple[str, str]
_Places = tuple[StoredKey, StoredKey]
"""Where a mark stands, and where it leads."""


class Sender(Protocol):
    """Sends requests for a layout."""

    def send(self, layouts: Sequence[Layout], calls: Sequence[Call]) -> list[Wire]:
        """The answers, if the layouts still hold."""
        ...


@dataclass(frozen=True, slots=True)
class Moves:
    """Finds the items that marks lead to.

    Attributes:
        table: the table's name.
        entity: whose keys they have.
        returned: whether an item that was found is what the listing asks for, and belongs where its mark was met.
        live: whether readers may see a stored item.
        retry_policy: how long to go on with what DynamoDB leaves unprocessed, and with conflicts.
    """

    table: str
    entity: EntityDefinition[Any]
    live: Callable[[Wire], bool]
    returned: Callable[[Wire, Wire], bool]
    retry_policy: RetryPolicy

    def follow(self, sender: Sender, layouts: Sequence[Layout], marks: Iterable[Wire]) -> dict[StoredKey, Wire]:
        """The items that marks lead to, by the stored key of the mark; marks of no such item are left out.

        Raises:
            UnprocessedError: DynamoDB left keys unread for too long.
            TransactionConflictError: other transactions held an item for too long.

        Cost: what reading the items consistently costs, 1 BatchGetItem for 100, several at a time. Where nothing is
        found: 2 units for every 4 KB at both places.
        """
        met = {stored_key(mark): mark for mark in marks}
        left: dict[StoredKey, _Places] = {key: (key, self._target(mark)) for key, mark in met.items()}
        found: dict[StoredKey, Wire] = {}
        for _ in range(_HOPS):
            if not left:
                break
            there = self._read(sender, layouts, {new for _, new in left.values()})
            unsure = {key: places for key, places in left.items() if not self._settles(there.get(places[1]))}
            both = self._confirm(sender, layouts, list(set(unsure.values())))
            for key, (old, new) in list(left.items()):
                before, after = both.get((old, new), (None, there.get(new)))
                item = next((item for item in (after, before) if item is not None and self.live(item)), None)
                further = self._further(before, after, new)
                del left[key]
                if item is not None:
                    found[key] = item
                elif further is not None:
                    left[key] = further
        return {key: item for key, item in found.items() if self.returned(met[key], item)}

    def with_strays(
        self,
        sender: Sender,
        layouts: Sequence[Layout],
        rows: Sequence[Wire],
        own: Sequence[Wire],
        home_of: Callable[[Wire], str | None],
    ) -> list[Wire]:
        """Return the rows of a shard that belong to it, and live rows of others whose home is empty.

        While counts settle, such an item was stored after the mover had passed, and readers of its key see it.

        Cost: 4 read units for 4 KB of each row that is not the shard's own, 1 round trip for 5.
        """
        mine = {stored_key(row) for row in own}
        strange = {stored_key(row): home_of(row) for row in rows if stored_key(row) not in mine}
        places = [(old, (new, old[1])) for old, new in strange.items() if new is not None]
        both = self._confirm(sender, layouts, places)
        kept = mine | {old for (old, _), (before, after) in both.items() if self._strays(before, after)}
        return [row for row in rows if stored_key(row) in kept]

    def _strays(self, before: Wire | None, after: Wire | None) -> bool:
        return before is not None and self.live(before) and (after is None or not self.live(after))

    def _settles(self, item: Wire | None) -> bool:
        return item is not None and (is_marker(item) or self.live(item))

    def _further(self, before: Wire | None, after: Wire | None, new: StoredKey) -> _Places | None:
        """Where to look on, if the item has moved again since its mark was read."""
        mark = next((item for item in (after, before) if item is not None and is_marker(item)), None)
        if mark is None or self._target(mark) == new:
            return None
        return stored_key(mark), self._target(mark)

    def _target(self, mark: Mapping[str, Any]) -> StoredKey:
        stored, sort = stored_key(mark)
        key = ItemKey(logical_partition_of(self.entity, stored), sort)
        return home(self.entity, key, moved_to(mark)), sort

    def _read(self, sender: Sender, layouts: Sequence[Layout], keys: Iterable[StoredKey]) -> dict[StoredKey, Wire]:
        found: dict[StoredKey, Wire] = {}
        left = [_wire_key(key) for key in sorted(keys)]
        pauses = self.retry_policy.pauses()
        while left:
            calls = [
                Call("BatchGetItem", {"RequestItems": {self.table: {"Keys": keys, "ConsistentRead": True}}})
                for keys in _groups(left, BATCH)
            ]
            left = []
            for answer in sender.send(layouts, calls):
                found |= {stored_key(item): item for item in answer.get("Responses", {}).get(self.table, [])}
                left += answer.get("UnprocessedKeys", {}).get(self.table, {}).get("Keys", [])
            if left and next(pauses, None) is None:
                raise UnprocessedError(
                    f"DynamoDB left {len(left)} moved items unread; list again later",
                    operation="BatchGetItem",
                    keys=[],
                )
        return found

    def _confirm(
        self, sender: Sender, layouts: Sequence[Layout], places: Sequence[_Places]
    ) -> dict[_Places, tuple[Wire | None, Wire | None]]:
        """What stands at both places, at one moment."""
        both: dict[_Places, tuple[Wire | None, Wire | None]] = {}
        pauses = self.retry_policy.pauses()
        waves = _groups(_groups(sorted(places), PAIRS), _WAVE)
        while waves:
            calls = [Call("TransactGetItems", {"TransactItems": self._gets(pairs)}) for pairs in waves[-1]]
            try:
                answers = sender.send(layouts, calls)
            except TransactionConflictError:
                if next(pauses, None) is None:
                    raise
                continue
            for pairs, answer in zip(waves.pop(), answers, strict=True):
                items = (response.get("Item") for response in answer["Responses"])
                stands = dict(zip(_places_of(pairs), items, strict=True))
                both |= {(old, new): (stands[old], stands[new]) for old, new in pairs}
        return both

    def _gets(self, pairs: Iterable[_Places]) -> list[Wire]:
        return [{"Get": {"TableName": self.table, "Key": _wire_key(key)}} for key in _places_of(pairs)]


def stored_key(item: Mapping[str, Any]) -> StoredKey:
    """The stored key of an item or key in DynamoDB JSON."""
    return item[PK]["S"], item[SK]["S"]


def distinct(layout: Layout, rows: list[Wire]) -> list[Wire]:
    """The entries of a stream of an index without those whose item has come before, with the same sort key."""
    attribute = layout.reading.sort_attribute
    kept: list[Wire] = []
    at = ""
    items: dict[str, Wire] = {}
    for row in rows:
        if row[attribute]["S"] != at:
            at, items = row[attribute]["S"], {}
        first = items.setdefault(row[SK]["S"], row)
        if first is not row:
            # Items of several logical partitions may have one sort key.
            identity = layout.identity_of(row)
            if identity == layout.identity_of(first) or identity in items:
                continue
            items[identity] = row
        kept.append(row)
    return kept


def markers_of(rows: Iterable[Wire]) -> list[Wire]:
    """Those of the stored items that are marks."""
    return [row for row in rows if MOVED_TO in row]


def _places_of(pairs: Iterable[_Places]) -> list[StoredKey]:
    """All places, each once: a transaction takes no item twice."""
    return list(dict.fromkeys(key for pair in pairs for key in pair))


def _groups(members: Sequence[T], size: int) -> list[list[T]]:
    return [list(members[i : i + size]) for i in range(0, len(members), size)]


def _wire_key(key: StoredKey) -> Wire:
    return {PK: {"S": key[0]}, SK: {"S": key[1]}}
