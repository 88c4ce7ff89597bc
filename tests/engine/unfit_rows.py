"""Stored rows that do not fit their entities, made of items that did: five of some, in three ways."""

from collections.abc import Sequence
from typing import Final

from dynashard import Entity, definition
from dynashard.routing import home
from dynashard.schema import PK, SK
from dynashard.transport import Transport
from dynashard.transport.interface import Wire

UNFIT: Final = 5
TYPED: Final[Sequence[Wire]] = ({"M": {}}, {"L": []})
"""Attributes of another type than their fields."""


class UnfitRows:
    """Makes rows of a table unfit. `rows` are those that are, as they are stored."""

    def __init__(self, wire: Transport, table: str) -> None:
        self.wire, self.table = wire, table
        self.rows: list[Wire] = []

    def spoil(self, items: Sequence[Entity], field: str) -> list[str]:
        """Change five of some stored items so that they do not fit; return their sort keys.

        Of two, a field has another type; two have the tenant of another key; one has nothing but its keys.
        """
        step = len(items) // UNFIT
        return [self.spoil_one(item, field, number) for number, item in enumerate(items[: UNFIT * step : step])]

    def spoil_one(self, item: Entity, field: str, number: int = 0) -> str:
        """Change one stored item in the way of this number; return its sort key."""
        row = self.row(item)
        # It stays in the indexes.
        keys = {name: value for name, value in row.items() if name in {PK, SK} or name.startswith("GSI")}
        if number < 2:
            row |= {field: TYPED[number]}
        elif number < 4:
            row |= {"tenant_id": {"S": f"another{number}"}}
        else:
            row = keys
        self.put(row)
        self.rows.append(row)
        return str(row[SK]["S"])

    def row(self, item: Entity) -> Wire:
        """Return what is stored of an item."""
        entity = definition(type(item))
        key = entity.key_of(item)
        place = home(entity, key, entity.shards.initial if entity.shards else 0)
        return self.at({PK: {"S": place}, SK: {"S": key.sort}})

    def at(self, key: Wire) -> Wire:
        """Return the row with this key."""
        request = {"TableName": self.table, "Key": {PK: key[PK], SK: key[SK]}, "ConsistentRead": True}
        found: Wire = self.wire.call("GetItem", request)["Item"]
        return found

    def put(self, row: Wire) -> None:
        """Store a row as it is."""
        self.wire.call("PutItem", {"TableName": self.table, "Item": row})

    @property
    def unharmed(self) -> bool:
        """Whether the rows that do not fit are as they were made."""
        return [self.at(row) for row in self.rows] == self.rows
