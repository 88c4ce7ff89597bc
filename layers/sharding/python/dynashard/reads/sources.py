"""Sources: a listing reads one or many stored partition keys, each with a range of sort keys."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Call, Wire

ALWAYS_READ: Final = (PK, SK, TYPE, REV, EXPIRES_AT, MOVED_TO)
"""What a listing must see of each item, whatever fields the caller asked for."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a source has been read.

    Attributes:
        sort: the last sort key.
        item: in an index, the item's two keys, `PK` and `SK`. None in a table; in an index it says that nothing at
            `sort` has been read yet.
        shard: in an index, the stored partition key that the entry was read from.
        change: in an index whose count was changing, from which count to which: `16>32`.
        seen: in an index, the items returned already whose entries have this very sort key, but for `item`; short
            hashes, as `Layout.identity` makes them.
        stale: in an index, whether entries may have moved since among those with this sort key.
        forced: in an index, whether to go on just after it even so: too much was returned to be remembered.
    """

    sort: str
    item: tuple[str, str] | None = None
    shard: str = ""
    change: str = ""
    seen: tuple[str, ...] = ()
    stale: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """One stored partition key of the table or of an index slot.

    Attributes:
        number: its place among the sources of the listing: the shard, counted from 0.
        partition: the stored partition key.
        slot: the index slot; None for the table.
        unique: in an index, whether it has each sort key once, since it is a read replica.
    """

    number: int
    partition: str
    slot: str | None
    unique: bool = False

    def begin(self, after: Position | None, bounds: Bounds, *, forward: bool) -> tuple[Position | None, Bounds]:
        """Where a Query goes on after a position: DynamoDB's exclusive start, and the bounds.

        In an index, the exact place counts only in the shard it was taken in: DynamoDB says nothing of the order of
        entries with equal sort keys. Elsewhere all entries with that sort key are read again.
        """
        if after is None or self.slot is None or (after.item is not None and after.shard == self.partition):
            return after, bounds
        return None, (bounds.after if self.unique else bounds.at)(after.sort, forward=forward)

    def start_key(self, position: Position) -> Wire:
        """DynamoDB's exclusive start key for going on after a position."""
        if self.slot is None or position.item is None:
            return {PK: {"S": self.partition}, SK: {"S": position.sort}}
        return {
            index_pk(self.slot): {"S": self.partition},
            index_sk(self.slot): {"S": position.sort},
            PK: {"S": position.item[0]},
            SK: {"S": position.item[1]},
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Shards of an index whose count is changing, among which entries move: read as one source.

    Attributes:
        number: its place among the sources of the listing.
        sources: the shards that entries leave, then those that they come to. Equal sort keys are read in this order.
        leaving: how many of them entries leave.
        change: from which count to which: `16>32`.
    """

    number: int
    sources: tuple[Source, ...]
    leaving: int
    change: str


Stream = Source | Group
"""What a listing reads as one list, in order of sort keys."""


def queries_of(streams: Iterable[Stream]) -> int:
    """How many Queries it takes to read on all of these."""
    return sum(len(stream.sources) if isinstance(stream, Group) else 1 for stream in streams)


@dataclass(frozen=True, slots=True)
class StreamRead:
    """One stream to read on: at most `limit` items after `start`, within `bounds` or the listing's own.

    `part` tells which of the listing's layouts the stream is of: one for each logical partition.
    """

    source: Stream
    limit: int
    start: Position | None = None
    bounds: Bounds | None = None
    part: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was read of a stream.

    Attributes:
        rows: the stored items that readers may see, and marks that lead to such, in reading order.
        last: how far the stream has been read; None if nothing is left in it.
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
        change: goes into positions; see `Position`.
        unique: whether sort keys alone are positions, as in the table.
    """

    table: str
    slot: str | None
    bounds: Bounds
    forward: bool
    visible: Callable[[Wire], bool]
    filters: FilterExpression
    fields: tuple[str, ...] | None = None
    consistent: bool = False
    change: str = ""
    unique: bool = False

    @property
    def sort_attribute(self) -> str:
        """Name of the sort key attribute."""
        return SK if self.slot is None else index_sk(self.slot)

    def position(self, row: Mapping[str, Any]) -> Position:
        """The position of a stored item, or of a key that DynamoDB stopped at."""
        if self.slot is None or self.unique:
            return Position(row[self.sort_attribute]["S"])
        item = (row[PK]["S"], row[SK]["S"])
        return Position(row[index_sk(self.slot)]["S"], item, row[index_pk(self.slot)]["S"], self.change)

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

    def chunk(self, answer: Wire, bounds: Bounds | None = None) -> Chunk:
        """What an answer to `call` brought within `bounds`, or else its own."""
        bounds = bounds or self.bounds
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
