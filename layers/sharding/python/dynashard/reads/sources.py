"""Sources of a listing: stored partition keys, each with a range of sort keys, and the Query requests that read them.

Where a source continues is a keyset position: the last sort key, and in an index also the item, because sort keys tie.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import inf
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from dynashard.placement import Placement
from dynashard.reads.bounds import Bounds
from dynashard.reads.filters import FilterExpression
from dynashard.routing import shard_key
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE, VERSION, index_pk, index_sk
from dynashard.transport.interface import Call, Reader, Wire

ALWAYS_READ: Final = (PK, SK, TYPE, VERSION, EXPIRES_AT, MOVED_TO)
"""Attributes that a listing needs of each item, whatever fields the caller asked for.

The last three are needed of every entity, although most items lack them, which costs nothing in the answer. A later
release may have declared versions, so this one must refuse its items; or an expiry, after which no release shows the
item. And a marker is the whole item that has moved, so without `MovedTo` it would be listed a second time.
"""


class Position(NamedTuple):
    """How far a source has been read.

    Attributes:
        sort: the last sort key. All other attributes are of an index.
        item: the item's keys, `PK` and `SK`; None if nothing at `sort` has been read yet.
        shard: the stored partition key that the entry was read from.
        resize: if the index's count was changing, from which count to which: `16>32`.
        seen: hashes (`Layout.identity`) of the other items already returned whose entries have this sort key.
        stale: whether entries with this sort key may have moved since.
        forced: continue just after this entry even so, because too many items were returned to remember them.
        side: -1 if everything with this sort key is still to be returned, 1 if everything was; 0 says nothing more.
    """

    sort: str
    item: tuple[str, str] | None = None
    shard: str = ""
    resize: str = ""
    seen: tuple[str, ...] = ()
    stale: bool = False
    forced: bool = False
    side: int = 0

    def pack(self, partition: str) -> list[Any]:
        """Return it as JSON values; `partition` begins all stored partition keys of the listing."""
        state: list[Any] = [self.sort, self.stale + 2 * self.forced + 4 * (self.side % 3)]
        if self.item is not None:
            state += [*self.item, self.shard.removeprefix(partition), self.resize, *self.seen]
        while not state[-1]:
            state.pop()
        return state

    @classmethod
    def unpack(cls, state: Sequence[Any], partition: str) -> "Position":
        """Return the position that `pack` wrote."""
        if len(state) == 1:
            return cls(state[0])
        whole: list[Any] = [*state, *[""] * (6 - len(state))]
        sort, flags, pk, sk, shard, resize, *seen = whole
        item, place = ((pk, sk), partition + shard) if pk else (None, "")
        return cls(sort, item, place, resize, tuple(seen), bool(flags & 1), bool(flags & 2), (0, 1, -1)[flags >> 2])

    @property
    def weight(self) -> int:
        """How many bytes it takes in a cursor, before compression."""
        return len((self.sort if self.item is None else "".join((self.sort, *self.item, *self.seen))).encode())

    @property
    def reread_limit(self) -> int:
        """How many rows at this sort key may be read again: each item returned, and by now its marker."""
        return 2 * (len(self.seen) + (self.item is not None))


class Source(Struct, frozen=True):
    """One stored partition key: the shard with this number, counted from 0.

    Its items lie between the bounds `range`; None if they may lie anywhere.
    """

    number: int
    partition: str
    range: Bounds | None = None


class Group(Struct, frozen=True):
    """Shards of an index among which entries move: read as one source.

    An entry moves only to a later one of the `sources`, and never between two of the same wave. `waves` says how many
    sources each wave has. Equal sort keys are read in this order.
    """

    number: int
    sources: tuple[Source, ...]
    waves: tuple[int, ...]


class Sources(Sequence[Source]):
    """The shards of a logical partition under a count, shard 0 first. Each is made when it is read."""

    def __init__(self, rule: Placement, partition: str, separator: str, count: int) -> None:
        self._key = partial(shard_key, rule, partition, separator, count)
        self._numbers = range(count or 1)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        """Return one shard; there are no slices."""
        return Source(self._numbers[index], self._key(index))


Stream = Source | Group
"""One list of a listing, in order of sort keys."""


def queries_of(streams: Iterable[Stream]) -> int:
    """Return how many Queries one read of each stream takes; none if no item can be in it."""
    return sum(
        len(stream.sources) if isinstance(stream, Group) else stream.range is None or not stream.range.empty
        for stream in streams
    )


class StreamRead(Struct, frozen=True):
    """A read of at most `limit` items of a stream of partition `part` after `start`, in `bounds` or the listing's."""

    source: Stream
    limit: int
    start: Position | None = None
    bounds: Bounds | None = None
    part: int = 0


class Chunk(Struct, frozen=True):
    """The stored items, and markers of moved items, that a read returned; `last` is None at the stream's end.

    If a reader has put other things in place of the items, `end` is the position of the last of them, and `tied` are
    the stored keys of those at the end that have the sort key of `last` in an index.
    """

    rows: list[Any]
    last: Position | None
    end: Position | None = None
    tied: Sequence[Wire] = ()


Convert = Callable[["Reading", StreamRead], Reader]
"""Returns the reader of a read's answer, which puts a `Chunk` in place of the items, perhaps of other things."""


class Reading(Struct, frozen=True):
    """How every source of a listing is read: builds Query requests, and reads their answers.

    `visible` returns whether readers may see a stored item, for which it looks at the attributes `needed`. `fields` are
    projected, None for whole items, and with them all that a listing needs but the partition key, which is that of the
    Query. `resize` goes into positions. `unique` says that sort keys alone are positions, as
    in the table. `now` is the time in epoch seconds by which items have expired; those that ever do are left to
    `visible` if it is not known.
    """

    table: str
    slot: str | None
    bounds: Bounds
    forward: bool
    visible: Callable[[Wire], bool]
    filters: FilterExpression
    fields: tuple[str, ...] | None = None
    consistent: bool = False
    resize: str = ""
    unique: bool = False
    needed: tuple[str, ...] = ()
    now: float = inf

    @property
    def partition_attribute(self) -> str:
        """The name of the partition key attribute."""
        return PK if self.slot is None else index_pk(self.slot)

    @property
    def sort_attribute(self) -> str:
        """The name of the sort key attribute."""
        return SK if self.slot is None else index_sk(self.slot)

    def position(self, row: Mapping[str, Any]) -> Position:
        """Return the position of a stored item, or of the key that DynamoDB stopped at."""
        if self.slot is None:
            return Position(row[SK]["S"])
        if self.unique:
            return Position(row[index_sk(self.slot)]["S"])
        item = (row[PK]["S"], row[SK]["S"])
        return Position(row[index_sk(self.slot)]["S"], item, row[index_pk(self.slot)]["S"], self.resize)

    def call(self, source: Source, limit: int, after: Position | None, bounds: Bounds | None = None) -> Call | None:
        """Return the Query for at most `limit` items of a source after a position; None if no key can be there."""
        bounds, after = self._rest(source, bounds or self.bounds, after)
        if bounds.empty:
            return None
        slot = self.slot
        keys = self.partition_attribute, self.sort_attribute
        condition, values = bounds.condition(keys[1], forward=self.forward)
        partition = f"{keys[0]} = :partition"
        request: Wire = {
            "TableName": self.table,
            "KeyConditionExpression": f"{partition} AND {condition}" if condition else partition,
            "ExpressionAttributeValues": {":partition": {"S": source.partition}, **values, **self.filters.values},
            "Limit": limit,
        }
        if slot is not None:
            request["IndexName"] = slot
        if not self.forward:
            request["ScanIndexForward"] = False
        if self.consistent:
            request["ConsistentRead"] = True
        if after is not None:
            key = dict(zip((PK, SK), after.item or (), strict=False))
            key |= {keys[0]: source.partition, keys[1]: after.sort}
            request["ExclusiveStartKey"] = {name: {"S": text} for name, text in key.items()}
        names = dict(self.filters.names)
        if self.filters.text:
            request["FilterExpression"] = self.filters.text
        if self.fields is not None:
            request["ProjectionExpression"], placeholders = _projection(
                (*self.fields, *self.needed, *ALWAYS_READ, keys[1]), keys[0]
            )
            names |= placeholders
        if names:
            request["ExpressionAttributeNames"] = names
        return Call("Query", request)

    def _rest(self, source: Source, bounds: Bounds, after: Position | None) -> tuple[Bounds, Position | None]:
        """Return the bounds of what a source has after a position, and the position if DynamoDB can continue at it."""
        if after is not None and (after.side or (self.slot is not None and after.shard != source.partition)):
            # DynamoDB does not define the order of index entries with equal sort keys. So a position is exact only in
            # its own shard; elsewhere all entries with its sort key are read again.
            beyond = after.side > 0 or (self.unique and not after.side)
            bounds = (bounds.after if beyond else bounds.at)(after.sort, forward=self.forward)
            after = None
        if source.range is None:
            return bounds, after
        bounds = bounds.within(source.range)
        if after is None or bounds.contains(after.sort):
            return bounds, after
        # DynamoDB refuses to continue at a key that is outside of the condition.
        return bounds.within(Bounds().after(after.sort, forward=self.forward)), None

    def chunk(self, answer: Wire, read: StreamRead) -> Chunk:
        """Return what an answer to a read has within its bounds."""
        items: list[Wire] | Chunk = answer["Items"]
        if isinstance(items, Chunk):
            return items
        self.complete(items, read)
        bounds = read.bounds or self.bounds
        attribute = self.sort_attribute
        last = answer.get("LastEvaluatedKey")
        rows = [item for item in items if self.visible(item)]
        furthest = last or (items[-1] if items else None)
        # A key condition can let in items beyond the far bound, at the end of what was read.
        if furthest is not None and not bounds.contains(furthest[attribute]["S"]):
            return Chunk([row for row in rows if bounds.contains(row[attribute]["S"])], None)
        return Chunk(rows, None if last is None else self.position(last))

    def complete(self, items: Iterable[Wire], read: StreamRead) -> None:
        """Give the stored items of an answer the partition key, which is not asked for if attributes are named."""
        if self.fields is not None:
            known = {"S": cast("Source", read.source).partition}
            for item in items:
                item[self.partition_attribute] = known


@lru_cache(maxsize=256)
def _projection(attributes: tuple[str, ...], known: str) -> tuple[str, Mapping[str, str]]:
    """Return the expression that projects attributes besides the `known` one, and their names by placeholder."""
    names = [name for name in dict.fromkeys(attributes) if name != known]
    placeholders = {f"#p{i}": name for i, name in enumerate(names)}
    return ", ".join(placeholders), placeholders
