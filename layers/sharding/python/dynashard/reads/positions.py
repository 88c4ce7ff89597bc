"""How far a round-robin or shard-ordered listing has come, kept for each virtual shard.

A virtual shard is `hash & (V-1)` for the count V under which the listing began or was last seen to grow. Kept so, a
position outlives a change of the shard count: when shards split, each child inherits its parent's position; when
they merge, the shard is read from the earliest position of those it took in, and an item counts only if it lies
beyond the position of its own virtual shard.

Items that are placed at random have no virtual shard: positions are then those of the shards themselves.
"""

from dataclasses import dataclass, replace
from typing import Final

from dynashard.reads.sources import Position

DONE: Final = Position("")
"""The position of a virtual shard that has been read to its end; no stored sort key is empty."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of all virtual shards.

    Attributes:
        at: one a virtual shard: None before its first item, `DONE` after its last.
        turn: the shard to be read next.
        version: in an index, that of the view under which the last of them was taken.
    """

    at: tuple[Position | None, ...]
    turn: int = 0
    version: str = ""

    @classmethod
    def beginning(cls, count: int) -> "Positions":
        """The start of a listing over `count` shards."""
        return cls((None,) * count)

    @property
    def done(self) -> bool:
        """Whether every virtual shard has been read to its end."""
        return all(position == DONE for position in self.at)

    def under(self, count: int) -> "Positions":
        """The same positions for a listing that now meets `count` shards, to which hashes lead."""
        virtual = len(self.at)
        turn = self.turn % count
        if count > virtual:
            return replace(self, at=tuple(self.at[v & (virtual - 1)] for v in range(count)), turn=turn)
        return self if turn == self.turn else replace(self, turn=turn)

    def among(self, count: int) -> "Positions":
        """The same positions for a listing that now meets `count` shards, among which items lie at random."""
        new = (None,) * (count - len(self.at))
        return Positions(self.at[:count] + new, self.turn % count)

    def as_of(self, version: str) -> "Positions":
        """The same positions under a view of another version: entries of an index may have moved in between."""
        at = tuple(p if p is None or p == DONE else replace(p, stale=True) for p in self.at)
        return replace(self, at=at, version=version)

    def served(self, shard: int, count: int) -> range:
        """The virtual shards whose items a shard holds under a count of at most their number."""
        return range(shard, len(self.at), count)

    def finished(self, shard: int, count: int) -> bool:
        """Whether nothing is left to read in a shard."""
        return all(self.at[v] == DONE for v in self.served(shard, count))

    def start(self, shard: int, count: int, *, forward: bool) -> Position | None:
        """Where to go on reading a shard; None for its beginning."""
        left = [self.at[v] for v in self.served(shard, count) if self.at[v] != DONE]
        known = [position for position in left if position is not None]
        if len(known) < len(left):
            return None
        first = min(known, key=_sort_key) if forward else max(known, key=_sort_key)
        tied = {(p.item, p.shard, p.change, p.stale, p.forced) for p in known if p.sort == first.sort}
        # Each has its own place among the entries that tie: all of them are read again.
        return first if len(tied) == 1 else Position(first.sort)

    def last(self, shard: int, count: int, sort: str) -> list[Position]:
        """The positions in a shard that stand at this sort key."""
        return [p for v in self.served(shard, count) if (p := self.at[v]) is not None and p.sort == sort]

    def counts(self, sort: str, virtual: int, *, forward: bool, again: bool = False) -> bool:
        """Whether an item with this sort key may not have been returned before.

        Args:
            sort: the sort key.
            virtual: its virtual shard.
            forward: direction.
            again: the answer where the position has this very sort key.
        """
        at = self.at[virtual]
        if at is None:
            return True
        if at == DONE:
            return False
        if sort == at.sort:
            return again
        return (sort > at.sort) is forward

    def read(self, shard: int, count: int, last: Position | None, *, forward: bool) -> "Positions":
        """The positions after a shard was read up to `last`, or to its end if that is None."""
        at = list(self.at)
        for v in self.served(shard, count):
            if last is None:
                at[v] = DONE
            elif self.counts(last.sort, v, forward=forward, again=True):
                at[v] = last
        return replace(self, at=tuple(at))


def _sort_key(position: Position) -> str:
    return position.sort
