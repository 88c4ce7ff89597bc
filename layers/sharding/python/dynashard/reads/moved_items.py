"""Items that move while they are listed: relocation markers are followed, and items at their old homes moved."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import EngineError, UnprocessedError
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.sources import Chunk, StreamRead
from dynashard.repository import Store
from dynashard.repository.conditions import is_damaged
from dynashard.repository.follow_markers import Pair, StoredItems
from dynashard.repository.late import bring_home
from dynashard.repository.projection import Reading
from dynashard.routing import StoredKey, logical_partition_of, settling, stored_key
from dynashard.schema import MOVED_TO, PK, REV, SK
from dynashard.transport.interface import Call, Wire

_HOPS: Final = 4
"""How many markers may lead to one another: an index may still show one of the resize before."""

Send = Callable[[Sequence[Call]], list[Wire]]
"""Sends calls at the same time; raises `OvertakenError` if their layouts no longer hold."""


class MovedItems(Struct, frozen=True):
    """Finds the items that markers lead to.

    Attributes:
        live: whether readers may see a stored item.
        returned: whether the listing returns an item that a marker led to.
        tried: items, as they were at their old homes, that the listing has tried to move. Each is tried once, so that a
            listing ends even if something at the new home keeps an item from moving.
        met: keys of markers met in SETTLE whose homes are to be read, by partition, stream and sort key.
    """

    store: Store
    entity: EntityDefinition[Any]
    live: Callable[[Wire], bool]
    returned: Callable[[Wire, Wire], bool]
    tried: set[tuple[StoredKey, str]] = field(default_factory=set)
    met: dict[tuple[int, int], dict[str, Wire]] = field(default_factory=dict)

    def follow(self, send: Send, markers: Iterable[Wire]) -> dict[StoredKey, Wire]:
        """Return the items that markers lead to, by the stored key of the marker; other markers are left out.

        Raises:
            UnprocessedError: DynamoDB left keys unread for too long.
            TransactionConflictError: other transactions held an item for too long.

        Cost: a consistent read of each item, 1 BatchGetItem for 100, several at a time; for a marker that leads to
        nothing, 2 units for every 4 KB at both places.
        """
        items = self._items(send)
        met = {stored_key(marker): marker for marker in markers}
        # A damaged marker leads nowhere: it stays in its place, and decoding it says what is wrong.
        found: dict[StoredKey, Wire] = {key: marker for key, marker in met.items() if is_damaged(marker)}
        left: dict[StoredKey, Pair] = {key: items.pair_of(each) for key, each in met.items() if key not in found}
        for _ in range(_HOPS):
            if not left:
                break
            try:
                live, left = items.follow(left, self.live)
            except UnprocessedError as error:
                raise _left_unread(error) from error
            found |= live
        return {key: item for key, item in found.items() if is_damaged(item) or self.returned(met[key], item)}

    def with_strays(
        self,
        send: Send,
        rows: Sequence[Wire],
        own: Sequence[Wire],
        *,
        home_of: Callable[[Wire], str | None],
        passed: Callable[[Wire], bool],
    ) -> list[Wire]:
        """Return the rows of a shard that belong to it (`own`), and live strays whose home is empty and was passed.

        A stray was stored at its old home after the mover had passed; readers of its key see it. If the listing has
        yet to read its home, it is moved there first, because otherwise it would be listed at both places.

        `home_of` returns the new home of a row that is at its old one. `passed` returns whether the listing has read
        the home of a row beyond the row's sort key.

        Raises `OvertakenError` if items were moved home, so the rows must be read again.

        Cost: 4 read units for 4 KB of each row that is not the shard's own, 1 round trip for 5; what a move costs.
        """
        mine = {stored_key(row) for row in own}
        both = self._both(send, {stored_key(row): home_of(row) for row in rows if stored_key(row) not in mine})
        strays = [
            item for item, after in both.values() if item and self.live(item) and not (after and self.live(after))
        ]
        away = [item for item in strays if not passed(item) and _version(item) not in self.tried]
        for item in away:
            self.tried.add(_version(item))
            places = self.store.router.places(self.entity, self._key(stored_key(item)))
            if settling(places):
                bring_home(self.store, self.entity, item, places)
        if away:
            raise OvertakenError
        kept = mine | {stored_key(item) for item in strays}
        return [row for row in rows if stored_key(row) in kept]

    def require_whole(
        self, send: Send, layouts: Sequence[Layout], reads: Sequence[StreamRead], chunks: Sequence[Chunk]
    ) -> None:
        """Find the items that are just being moved home in SETTLE, which a wave may have missed.

        A Query may see one part of a transaction and not yet the other: the marker of an item, and then its home
        without it. So the markers that a listing meets are remembered until it reads their homes.

        Raises `OvertakenError` if such an item is at its home now, so the wave must be read again. Cost: 4 read units
        for 4 KB of each item that is missing at its home, 1 round trip for 5; otherwise none.
        """
        wave = [each for each in zip(reads, chunks, strict=True) if layouts[each[0].part].strays is not None]
        for read, chunk in wave:
            for row in chunk.rows:
                number = layouts[read.part].number_of(row)
                if MOVED_TO in row and number is not None and number != read.source.number:
                    self.met.setdefault((read.part, number), {})[row[SK]["S"]] = {PK: row[PK], SK: row[SK]}
        missing: dict[StoredKey, str | None] = {}
        for read, chunk in wave:
            layout, met = layouts[read.part], self.met.get((read.part, read.source.number), {})
            there = {row[SK]["S"] for row in chunk.rows}
            for sort in [sort for sort in list(met) if layout.covers(read, chunk, sort)]:
                marker = met.pop(sort, None)
                if marker is not None and sort not in there and layout.strays is not None:
                    missing[stored_key(marker)] = layout.strays(marker)
        found = [item for _, item in self._both(send, missing).values() if item]
        arrived = {_version(item) for item in found if self.live(item) and self.returned(item, item)}
        if not arrived <= self.tried:
            self.tried.update(arrived)
            raise OvertakenError

    def _both(
        self, send: Send, homes: Mapping[StoredKey, str | None]
    ) -> Mapping[Pair, tuple[Wire | None, Wire | None]]:
        """Return what is stored at each key and at its home, at one moment; keys without a home are left out."""
        pairs = [(old, (new, old[1])) for old, new in homes.items() if new is not None]
        try:
            return self._items(send).pairs(pairs) if pairs else {}
        except UnprocessedError as error:
            raise _left_unread(error) from error

    def _items(self, send: Send) -> StoredItems:
        reading, pauses = Reading(consistent=True), self.store.retry_policy.pauses()
        return StoredItems(self.store, self.entity, reading, pauses, self._key, send)

    def _key(self, stored: StoredKey) -> ItemKey:
        return ItemKey(logical_partition_of(self.entity, stored[0]), stored[1])


def _version(item: Wire) -> tuple[StoredKey, str]:
    return stored_key(item), item.get(REV, {}).get("S", "")


def _left_unread(error: UnprocessedError) -> EngineError:
    """The error of a listing: the cause, or how many items are left. It names no stored keys."""
    if isinstance(error.__cause__, EngineError):
        return error.__cause__
    return UnprocessedError(
        f"DynamoDB left {len(error.keys)} moved items unread; list again later", operation=error.operation, keys=[]
    )
