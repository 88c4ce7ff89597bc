"""What a listing enumerates now: which shards, and how the stored items in them are interpreted.

A listing asks for the layout before each round. While the signature is the same, positions hold; when it changes, they
are rebased.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from dynashard.entity import IndexDefinition
from dynashard.placement import CALCULATED
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Group, Position, Reading, Source, Stream
from dynashard.routing import shard_keys
from dynashard.schema import PK, SK
from dynashard.topology import View
from dynashard.transport.interface import Wire

MAX_SEEN_IN_MEMORY: Final = 10_000
"""How many returned items a position may name that no cursor carries."""


class OvertakenError(Exception):
    """The layout has changed, or items have moved: the read must be repeated under the new layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The shards of a logical partition under one view, in the order in which they are read, and how.

    Attributes:
        signature: equal for layouts that are read alike.
        hash_of: the hash that places a stored item in its stream; None if items are placed at random.
        follows: relocation markers are followed to the items they lead to.
        foreign: a shard may hold items whose home is elsewhere; they are skipped.
        strays: returns the new home of an item found unmarked at its old home, None for items elsewhere. Such an item
            is returned if its new home is empty. None if no such items are returned.
        moving: items may be moving: there may be markers, and in an index several entries of one item with equal sort
            keys.
        identity: in an index, returns a short hash of an item's key from its stored one; None in a table.
        version: in an index, another text after each change of the view.
        in_memory: no cursor carries the positions.
        expires: when the answer of a Query requires another look at the layout, in epoch seconds.
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
        """Return the positions of any earlier layout as this layout's; None is the beginning."""
        count = len(self.streams)
        if positions is None:
            return Positions((None,) * count, version=self.version)
        if positions.version != self.version:
            positions = positions.as_of(self.version)
        return positions.among(count) if self.hash_of is None else positions.under(count)

    def resumed(self, after: Position | None) -> Position | None:
        """Return the position to continue at; without its item if all entries with its sort key are to be read again.

        An item that moves leaves one place among equal sort keys for another. While that may happen, what was returned
        is recognised by its hash, not by its place.
        """
        if after is None or self.identity is None or after.item is None or after.forced:
            return after
        return Position(after.sort) if self.moving or after.stale else after

    def at_home(self, row: Wire, number: int) -> bool:
        """Whether a stored item belongs to the stream in which it was found."""
        return self.hash_of is None or self.hash_of(row) & (len(self.streams) - 1) == number

    def identity_of(self, row: Wire) -> str:
        """Return the short hash of an index entry's item; '' in a table."""
        return "" if self.identity is None else self.identity(row[PK]["S"], row[SK]["S"])

    def max_seen(self, positions: int) -> int:
        """Return how many returned items each position of a cursor of so many may name, at 8 bytes each."""
        if self.in_memory:
            return MAX_SEEN_IN_MEMORY
        return min(64, max(8, 512 // positions)) if self.moving else min(8, max(1, 32 // positions))


def sources_of(keys: Iterable[str]) -> tuple[Source, ...]:
    """Return the shards with these stored partition keys, shard 0 first."""
    return tuple(Source(number, key) for number, key in enumerate(keys))


def index_streams(index: IndexDefinition, partition: str, view: View) -> tuple[Stream, ...]:
    """Return the shards of an index, in groups among which entries move while its count changes."""
    old, new = (shard_keys(CALCULATED, partition, index.separator, n) for n in (view.count, view.new_count))
    if view.stable or old == new:
        return sources_of(old)
    groups = min(len(old), len(new))
    return tuple(_group(number, old[number::groups], new[number::groups]) for number in range(groups))


def _group(number: int, old: list[str], new: list[str]) -> Group:
    """Group the shards that share the lowest bits of a hash: those that entries leave, then those that gain them."""
    leaving = [key for key in old if key not in new] or old
    return Group(number, sources_of(dict.fromkeys((*leaving, *old, *new))), len(leaving))
