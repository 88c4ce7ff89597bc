"""One item for each value of a field: materialized copies in several logical partitions are listed once.

Copies have equal sort keys, which contain the field. So they are neighbours in order, and a cursor needs only the last
sort key, after which reading continues in all partitions. But copies are updated one after the other, and one may still
be at its former position. So a page drops items by the values of all its items, and the cursor remembers the values
that were updated shortly before they were returned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from xxhash import xxh64_digest

from dynashard.transport.interface import Wire

SETTLING: Final = 300
"""Seconds after an update in which copies may not have been updated."""
MEMORY: Final = 64
"""How many values a cursor remembers at most: those that were updated last."""
_HASH_BYTES: Final = 6

T = TypeVar("T")


class Dedup(Struct):
    """Drops copies from one listing: each value of the stored `attribute` is returned once.

    Attributes:
        updated: the stored attribute with the time of an item's last update; None if there is none.
        fits: whether a stored item can be decoded: one that cannot is not returned in place of its copies.
        recent: hashes of values that earlier pages returned, and when their items were updated, in epoch seconds.
        excess: how many items are read for one that is returned, on average.
    """

    attribute: str
    updated: str | None = None
    recent: Mapping[str, int] = field(default_factory=dict)
    excess: float = 1.0
    fits: Callable[[Wire], bool] = lambda _: True

    def drop_repeats(self, items: Iterable[T], stored: Callable[[T], Wire]) -> list[T]:
        """Return the items without those whose value an item before them has, or an earlier page returned."""
        first: dict[str, T] = {}
        kept = []
        for item in items:
            value = self._value(stored(item))
            if value is not None:
                if self.recent and _hash(value) in self.recent:
                    continue
                if value in first and self.fits(stored(first[value])):
                    continue
                first[value] = item
            kept.append(item)
        return kept

    def remembered(self, returned: Sequence[Wire], now: int) -> dict[str, int]:
        """Return what the next page needs as `recent`."""
        recent = {value: at for value, at in self.recent.items() if at > now - SETTLING}
        for item in returned:
            updated = item.get(self.updated) if self.updated else None
            value, at = self._value(item), 0 if updated is None else _seconds(updated.get("S"))
            if value is not None and at > now - SETTLING and self.fits(item):
                recent[_hash(value)] = at
        return dict(sorted(recent.items(), key=lambda each: -each[1])[:MEMORY])

    def _value(self, item: Wire) -> str | None:
        stored = item.get(self.attribute)
        return None if stored is None else str(next(iter(stored.values())))


def _seconds(moment: Any) -> int:
    try:
        at = datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        return 0
    return int(at.astimezone(UTC).timestamp()) if at.tzinfo else 0


def _hash(value: str) -> str:
    return xxh64_digest(value.encode())[:_HASH_BYTES].hex()
