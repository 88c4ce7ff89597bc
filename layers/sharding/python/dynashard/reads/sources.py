"""Sources: a listing reads one or many stored partition keys, each with a range of sort keys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.entity import IndexDefinition
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Call, Wire

Position = tuple[str, ...]
"""Where reading stopped in a source: its sort key; in an index, the index sort key and the item's two keys."""

ALWAYS_READ: Final = (PK, SK, TYPE, REV, EXPIRES_AT, MOVED_TO)
"""What a listing must see of each item, whatever fields the caller asked for."""


@dataclass(frozen=True, slots=True)
class Source:
    """One stored partition key of the table or of an index slot.

    Attributes:
        number: its place among the sources of the listing: the shard, counted from 0.
        partition: the stored partition key.
        slot: the index slot; None for the table.
    """

    number: int
    partition: str
    slot: str | None

    def start_key(self, position: Position) -> Wire:
        """DynamoDB's exclusive start key for going on after a position."""
        if self.slot is None:
            return {PK: {"S": self.partition}, SK: {"S": position[0]}}
        return {
            index_pk(self.slot): {"S": self.partition},
            index_sk(self.slot): {"S": position[0]},
            PK: {"S": position[1]},
            SK: {"S": position[2]},
        }


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one Query brought.

    Attributes:
        rows: the stored items that readers may see, in reading order.
        last: how far the source has been read; None if nothing is left in it.
    """

    rows: list[Wire]
    last: Position | None


@dataclass(frozen=True, slots=True)
class Reading:
    """How every source of a listing is read.

    Attributes:
        table: the table's name.
        slot: the index slot; None for the table.
        bounds: the range of sort keys.
        forward: direction.
        visible: whether readers may see a stored item.
        filters: applied by DynamoDB.
        fields: what to project; None for whole items.
        consistent: strongly consistent reads.
    """

    table: str
    slot: str | None
    bounds: Bounds
    forward: bool
    visible: Callable[[Wire], bool]
    filters: FilterExpression
    fields: tuple[str, ...] | None = None
    consistent: bool = False

    @property
    def sort_attribute(self) -> str:
        """Name of the sort key attribute."""
        return SK if self.slot is None else index_sk(self.slot)

    def position(self, row: Mapping[str, Any]) -> Position:
        """The position of a stored item, or of a key that DynamoDB stopped at."""
        if self.slot is None:
            return (row[SK]["S"],)
        return row[index_sk(self.slot)]["S"], row[PK]["S"], row[SK]["S"]

    def call(self, source: Source, *, limit: int, start: Position | None = None, bounds: Bounds | None = None) -> Call:
        """The Query for at most `limit` items of a source, after `start`, within `bounds` or else its own."""
        condition, values = (bounds or self.bounds).condition(self.sort_attribute, forward=self.forward)
        partition = f"{PK if self.slot is None else index_pk(self.slot)} = :partition"
        request: Wire = {
            "TableName": self.table,
            "KeyConditionExpression": f"{partition} AND {condition}" if condition else partition,
            "ExpressionAttributeValues": {":partition": {"S": source.partition}, **values, **self.filters.values},
            "Limit": limit,
        }
        if self.slot is not None:
            request["IndexName"] = self.slot
        if not self.forward:
            request["ScanIndexForward"] = False
        if self.consistent:
            request["ConsistentRead"] = True
        if start is not None:
            request["ExclusiveStartKey"] = source.start_key(start)
        names = dict(self.filters.names)
        if self.filters.text:
            request["FilterExpression"] = self.filters.text
        if self.fields is not None:
            names |= {f"#p{i}": name for i, name in enumerate(self._projected())}
            request["ProjectionExpression"] = ", ".join(name for name in names if name.startswith("#p"))
        if names:
            request["ExpressionAttributeNames"] = names
        return Call("Query", request)

    def chunk(self, answer: Wire) -> Chunk:
        """What an answer to `call` brought."""
        bounds = self.bounds
        attribute = self.sort_attribute
        items: list[Wire] = answer["Items"]
        last = answer.get("LastEvaluatedKey")
        rows = [item for item in items if self.visible(item)]
        furthest = last or (items[-1] if items else None)
        # A key condition can let in items beyond the far bound, at the end of what was read.
        if furthest is not None and not bounds.contains(furthest[attribute]["S"]):
            return Chunk([row for row in rows if bounds.contains(row[attribute]["S"])], None)
        return Chunk(rows, None if last is None else self.position(last))

    def _projected(self) -> tuple[str, ...]:
        keys = () if self.slot is None else (index_pk(self.slot), index_sk(self.slot))
        return tuple(dict.fromkeys((*(self.fields or ()), *ALWAYS_READ, *keys)))


def slot_of(index: IndexDefinition | None) -> str | None:
    """The slot of an index, None for the table."""
    return None if index is None else index.slot
