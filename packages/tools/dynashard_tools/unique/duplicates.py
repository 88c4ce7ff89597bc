"""Finds items that have the same unique values before anything is reserved for them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple, Self

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.reservations import stored_places
from dynashard.transport.interface import Wire


class Duplicate(NamedTuple):
    """Items that have the same values of unique fields: the fields, the keys of ten items, and how many `more` have."""

    fields: tuple[str, ...]
    items: tuple[str, ...]
    more: int = 0


class Duplicates:
    """Collects what is due to each item in a temporary database, which is on disk if it is large. Close it."""

    def __init__(self, entity: EntityDefinition[Any]) -> None:
        self._entity = entity
        self._database = sqlite3.connect("")
        self._database.execute("CREATE TABLE due (place TEXT, fields TEXT, item TEXT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def add(self, key: ItemKey, item: Wire) -> None:
        """Add a stored item. One that is read twice, because it moved meanwhile, counts once."""
        rows = [
            (place, ", ".join(unique.fields), f"{key.partition} / {key.sort}")
            for place, unique in stored_places(self._entity, item).items()
        ]
        self._database.executemany("INSERT INTO due VALUES (?, ?, ?)", rows)

    def found(self) -> Iterator[Duplicate]:
        """Return the duplicates, those of one field after those of another."""
        self._database.execute("CREATE INDEX by_place ON due (place)")
        several = (
            "SELECT place, fields, count(DISTINCT item) AS number FROM due GROUP BY place HAVING number > 1 "
            "ORDER BY fields, place"
        )
        with closing(self._database.execute(several)) as cursor:
            for place, fields, number in cursor:
                items = self._database.execute(
                    "SELECT DISTINCT item FROM due WHERE place = ? ORDER BY item LIMIT 10", (place,)
                )
                named = tuple(item for (item,) in items)
                yield Duplicate(tuple(fields.split(", ")), named, number - len(named))
