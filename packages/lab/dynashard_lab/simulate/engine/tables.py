"""Tables in memory: items by key, in the order of their sort keys, and the entries of their indexes."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dynashard import schema
from dynashard.transport.interface import Wire
from dynashard_lab.simulate.engine.refusal import RefusedError, invalid
from dynashard_lab.simulate.model import TABLE

SEGMENTS: Final = 1024
"""Parts of a table that a parallel Scan can read on their own; a number of segments is divided among them."""


class KeyNames(NamedTuple):
    """The attributes of a key; `sort` is empty if there is no sort key."""

    hash: str
    sort: str


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The keys of a table and of its indexes by name. All of them are texts, and indexes project all attributes."""

    key: KeyNames
    indexes: Mapping[str, KeyNames]


ITEM_TABLE: Final = TableSchema(
    KeyNames(schema.PK, schema.SK),
    {slot: KeyNames(schema.index_pk(slot), schema.index_sk(slot)) for slot in schema.INDEX_SLOTS},
)
"""The keys of the table with the items; see `dynashard.schema`."""
TOPOLOGY_TABLE: Final = TableSchema(KeyNames(schema.TOPOLOGY_KEY, ""), {})
"""The keys of the topology table."""


class StoredKey(NamedTuple):
    """The stored key of an item; `sort` is empty if the table has no sort key."""

    hash: str
    sort: str


class Row(NamedTuple):
    """A stored item and its bytes. Neither is ever changed in place."""

    item: Wire
    size: int


Entry = tuple[str, str, str]
"""The place of an entry in its collection: its sort key, and the stored key of its item, because sort keys tie."""


class Collection:
    """Rows with one partition key, of a table or an index, in order."""

    __slots__ = ("order", "rows")

    def __init__(self) -> None:
        self.order: list[Entry] = []
        self.rows: dict[Entry, Row] = {}

    def store(self, entry: Entry, row: Row) -> None:
        """Store a row at a place, in place of the one that is there."""
        if entry not in self.rows:
            if not self.order or entry > self.order[-1]:
                self.order.append(entry)
            else:
                insort(self.order, entry)
        self.rows[entry] = row

    def remove(self, entry: Entry) -> None:
        """Remove the row at a place."""
        del self.rows[entry]
        del self.order[bisect_left(self.order, entry)]


class Table:
    """One table with its indexes."""

    def __init__(self, name: str, key: TableSchema) -> None:
        self.name = name
        self.schema = key
        self.collections: dict[str, dict[str, Collection]] = {each: {} for each in (TABLE, *key.indexes)}

    def key_of(self, item: Mapping[str, Any]) -> StoredKey:
        """Return the stored key of an item; refuses one that has none."""
        names = self.schema.key
        try:
            hash_key, sort_key = item[names.hash]["S"], item[names.sort]["S"] if names.sort else ""
        except KeyError:
            raise invalid(f"One of the required keys was not given a value: {names}") from None
        if not hash_key or (names.sort and not sort_key):
            raise invalid(f"One or more parameter values are not valid: an empty key attribute of {names}")
        return StoredKey(hash_key, sort_key)

    def exact_key(self, key: Mapping[str, Any]) -> StoredKey:
        """Return the stored key that a request names; refuses other attributes in it."""
        if len(key) != 1 + bool(self.schema.key.sort):
            raise invalid("The provided key element does not match the schema")
        return self.key_of(key)

    def row(self, key: StoredKey) -> Row | None:
        """Return the row with a key, None if there is none."""
        collection = self.collections[TABLE].get(key.hash)
        return None if collection is None else collection.rows.get((key.sort, key.hash, key.sort))

    def collection(self, index: str, hash_key: str) -> Collection | None:
        """Return the rows with a partition key of the table or of an index."""
        if index not in self.collections:
            raise invalid(f"The table does not have the specified index: {index}")
        return self.collections[index].get(hash_key)

    def place(self, index: str, item: Mapping[str, Any]) -> tuple[str, Entry] | None:
        """Return the partition key and the place of an item in an index or in the table; None if it is not there."""
        names = self.schema.key if index == TABLE else self.schema.indexes[index]
        hash_key, sort_key = item.get(names.hash), item.get(names.sort, {"S": ""})
        if hash_key is None or (names.sort and names.sort not in item):
            return None
        own = self.schema.key
        stored = (item[own.hash]["S"], item[own.sort]["S"] if own.sort else "")
        try:
            return hash_key["S"], (sort_key["S"], *stored)
        except KeyError:
            raise invalid(
                f"One or more parameter values were invalid: Type mismatch for a key of index {index}"
            ) from None

    def change(self, old: Row | None, new: Row | None) -> None:
        """Replace a row, None if there is none, by another, in the table and its indexes."""
        for index, collections in self.collections.items():
            before = None if old is None else self.place(index, old.item)
            after = None if new is None else self.place(index, new.item)
            if before is not None and before != after:
                collections[before[0]].remove(before[1])
                if not collections[before[0]].order:
                    del collections[before[0]]
            if after is not None and new is not None:
                collection = collections.get(after[0])
                if collection is None:
                    collection = collections[after[0]] = Collection()
                collection.store(after[1], new)

    def segment(self, number: int, segments: int) -> Iterator[str]:
        """Yield the partition keys of one segment of a Scan, in the order in which they are read."""
        mine = (key for key in self.collections[TABLE] if _part(key) * segments // SEGMENTS == number)
        return iter(sorted(mine, key=scan_order))


def scan_order(hash_key: str) -> tuple[int, str]:
    """Return the place of a partition key in a Scan."""
    return _part(hash_key), hash_key


def _part(hash_key: str) -> int:
    total = 0
    for byte in hash_key.encode():
        total = (total * 31 + byte) % 1_000_003
    return total % SEGMENTS


class Database:
    """Tables by name."""

    def __init__(self, **tables: TableSchema) -> None:
        self._tables = {name: Table(name, key) for name, key in tables.items()}

    def __getitem__(self, name: str) -> Table:
        try:
            return self._tables[name]
        except KeyError:
            raise RefusedError("ResourceNotFoundException", f"Requested resource not found: {name}") from None
