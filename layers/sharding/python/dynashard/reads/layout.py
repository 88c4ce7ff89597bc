"""What a listing enumerates now: which shards, and how what stands in them is to be taken.

A listing asks for the layout before each round. While it stays the same, positions go on as they are; once it is
another, they are rebased.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.placement import CALCULATED
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Group, Position, Reading, Source, Stream
from dynashard.routing import Router, rule_of, shard_keys
from dynashard.schema import PK, SK
from dynashard.topology import Phase, View
from dynashard.transport.interface import Wire

MAX_SEEN_IN_MEMORY: Final = 10_000
"""How many returned items a position that no cursor carries may name."""


class OvertakenError(Exception):
    """The layout has changed, or items have moved: what was to be read is to be read for what holds now."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The shards of a listing under one view.

    Attributes:
        streams: what is read, in order.
        reading: how each of them is read.
        signature: equal for layouts that are alike.
        hash_of: the hash that leads a stored item to its stream; None where items lie at random.
        follows: marks stand for the items they lead to.
        foreign: items away from their home may stand in a shard, and are none of its own.
        strays: gives the new home of an item that is found at its old home without a marker. Such an item is returned
            if its new home is empty. It gives None for items elsewhere. None if no such items are returned.
        moving: items are on their way, or may be: marks may stand among them, and several entries of one item, with
            equal sort keys, in an index.
        identity: in an index, a short hash of an item's key, from its stored one; None in a table.
        version: of an index, another one after each change of the view.
        in_memory: positions are not carried by cursors.
        expires: until when an answer may be taken without another look at the layout, in epoch seconds.
    """

    streams: tuple[Stream, ...]
    reading: Reading
    signature: Hashable = None
    hash_of: Callable[[Wire], int] | None = None
    follows: bool = False
    foreign: bool = False
    strays: Callable[[Wire], str | None] | None = None
    moving: bool = False
    identity: Callable[[str, str], str] | None = None
    version: str = ""
    in_memory: bool = False
    expires: float = inf

    def rebase(self, positions: Positions | None) -> Positions:
        """Positions of any earlier layout, for this one; None is the beginning."""
        count = len(self.streams)
        if positions is None:
            return Positions((None,) * count, version=self.version)
        if positions.version != self.version:
            positions = positions.as_of(self.version)
        return positions.among(count) if self.hash_of is None else positions.under(count)

    def resumed(self, after: Position | None) -> Position | None:
        """The position at which to go on; one without an item if all entries with its sort key are to be read again.

        Among entries with equal sort keys an item that moves leaves one place for another. While that may happen, or
        may have happened, what was returned is told by its hash, and not by where it stood.
        """
        if after is None or self.identity is None or after.item is None or after.forced:
            return after
        return Position(after.sort) if self.moving or after.stale else after

    def at_home(self, row: Wire, number: int) -> bool:
        """Whether a stored item belongs to the stream in which it was met."""
        return self.hash_of is None or self.hash_of(row) & (len(self.streams) - 1) == number

    def identity_of(self, row: Mapping[str, Any]) -> str:
        """The short hash of an index entry's item; '' in a table."""
        return "" if self.identity is None else self.identity(row[PK]["S"], row[SK]["S"])

    def max_seen(self, positions: int) -> int:
        """How many returned items each of so many positions of a cursor may name.

        Each takes 8 bytes, and is needed only where index sort keys are equal.
        """
        if self.in_memory:
            return MAX_SEEN_IN_MEMORY
        return min(64, max(8, 512 // positions)) if self.moving else min(8, max(1, 32 // positions))


class Layouts:
    """Tells the layouts of a listing at any time, one for each logical partition. Safe to share between threads.

    Args:
        ask: asks for the views, one for each partition.
        make: makes the layout of the partition with this number.

    Cost: what asking the topology for a view costs: none while a lease holds.
    """

    def __init__(self, ask: Callable[[], Sequence[View]], make: Callable[[int, View], Layout]) -> None:
        self._ask = ask
        self._make = make
        self._last: tuple[Sequence[View], tuple[Layout, ...]] | None = None

    def __call__(self) -> tuple[Layout, ...]:
        """The layouts now."""
        views = self._ask()
        last = self._last
        if last is not None and all(map(_same, last[0], views)):
            return last[1]
        made = tuple(self._make(part, view) for part, view in enumerate(views))
        self._last = views, made
        return made


def _same(one: View, other: View) -> bool:
    return one == other and one.version == other.version


def table_count(entity: EntityDefinition[Any], view: View) -> int:
    """The shard count whose layout readers of the table enumerate."""
    if not rule_of(entity).fixed:
        # Readers look wherever items may lie: they widen before writers do, and narrow after them.
        return max(view.count, view.new_count)
    return view.new_count if view.phase is Phase.SETTLE else view.count


def table_streams(entity: EntityDefinition[Any], partition: str, count: int) -> tuple[Source, ...]:
    """The shards of a logical partition under a count."""
    keys = shard_keys(rule_of(entity), partition, entity.separator, count)
    return tuple(Source(number, key, None) for number, key in enumerate(keys))


def stored_streams(router: Router, entity: EntityDefinition[Any], partition: str) -> tuple[Source, ...]:
    """All shards in which items of a logical partition may lie: those of the count now, and of the one to come."""
    view = router.view(entity, partition)
    rule = rule_of(entity)
    counts = (view.count, view.new_count)
    keys = dict.fromkeys(key for count in counts for key in shard_keys(rule, partition, entity.separator, count))
    return tuple(Source(number, key, None) for number, key in enumerate(keys))


def index_streams(index: IndexDefinition, partition: str, view: View) -> tuple[Stream, ...]:
    """The shards of an index, in groups among which entries move while its count changes."""
    old, new = (shard_keys(CALCULATED, partition, index.separator, n) for n in (view.count, view.new_count))
    if view.stable or old == new:
        return tuple(Source(number, key, index.slot) for number, key in enumerate(old))
    groups = min(len(old), len(new))
    change = f"{view.count}>{view.new_count}"
    return tuple(_group(index, number, old[number::groups], new[number::groups], change) for number in range(groups))


def _group(index: IndexDefinition, number: int, old: list[str], new: list[str], change: str) -> Group:
    """Of the shards that share the lowest bits of a hash: those that entries leave, and those that gain them."""
    leaving = [key for key in old if key not in new] or old
    keys = [*leaving, *(key for key in dict.fromkeys(old + new) if key not in leaving)]
    sources = tuple(Source(place, key, index.slot) for place, key in enumerate(keys))
    return Group(number, sources, len(leaving), change)


def replica_streams(index: IndexDefinition, partition: str, count: int) -> tuple[Source, ...]:
    """The shards of a read replica."""
    keys = shard_keys(CALCULATED, partition, index.separator, count)
    return tuple(Source(number, key, index.slot, unique=True) for number, key in enumerate(keys))


def index_signature(view: View) -> Hashable:
    """What makes layouts of an index alike."""
    return view.count, view.new_count, view.stable, view.marks, view.version
