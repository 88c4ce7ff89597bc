"""Pack items into transactions: which are marked together, and what they add to which rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Generic, TypeVar

from dynashard.entity import Entity, definition
from dynashard_patterns.rollups.declaration import Row, Summing

E = TypeVar("E", bound=Entity)

MOST_WRITES: Final = 100
"""DynamoDB's own bound on a transaction."""
_WRITES_A_ROW: Final = 2
"""While the count of a row's partition changes, a new row is a mark and an item."""

Sums = dict[str, int | Decimal]


@dataclass(slots=True)
class Pack(Generic[E]):
    """Items that are counted in one transaction, by the ids of their marks, and what they add, by row."""

    items: dict[str, E] = field(default_factory=dict)
    rows: dict[Row, Sums] = field(default_factory=dict)

    def takes(self, rows: Iterable[Row]) -> bool:
        """Whether there is room for one more item, which is counted in these rows."""
        more = self.rows.keys() | set(rows)
        return len(self.items) + 1 + _WRITES_A_ROW * len(more) <= MOST_WRITES

    def add(self, mark: str, item: E, rows: Iterable[Row], values: Mapping[str, int | Decimal]) -> None:
        """Take in an item."""
        self.items[mark] = item
        for row in rows:
            add_up(self.rows.setdefault(row, {}), values)


def packed(roll_ups: Summing[E], items: Iterable[E]) -> Iterator[Pack[E]]:
    """Items in packs that fit a transaction each; neighbours in key order, which share rows, come together.

    An item that adds nothing is left out, and so is all but one of those with one key.
    """
    pack: Pack[E] = Pack()
    for item in _in_order(roll_ups, items):
        values = {name: value for name, value in roll_ups.add(item).items() if value}
        if not values:
            continue
        rows = roll_ups.rows(item)
        if not pack.takes(rows):
            yield pack
            pack = Pack()
        pack.add(roll_ups.mark(item), item, rows, values)
    if pack.items:
        yield pack


def add_up(sums: Sums, values: Mapping[str, int | Decimal]) -> None:
    """Add values to sums, in place."""
    for name, value in values.items():
        sums[name] = sums.get(name, 0) + value


def _in_order(roll_ups: Summing[E], items: Iterable[E]) -> list[E]:
    entity = definition(roll_ups.of)
    by_key = {(key.partition, key.sort): item for item in items for key in [entity.key_of(item)]}
    return [by_key[key] for key in sorted(by_key)]
