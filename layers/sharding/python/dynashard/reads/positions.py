"""The keyset positions of a round-robin or shard-ordered listing, one for each virtual shard.

A virtual shard is `hash & (V-1)` for the count V under which the listing began or was last seen to grow. So positions
outlive a change of the shard count: when shards split, each child inherits its parent's position; when they merge, the
shard is read from the earliest position of its virtual shards, and an item counts only if it is beyond the position of
its own virtual shard. Items that are placed at random have no virtual shards, so positions are those of the shards.
"""

from dataclasses import dataclass, replace
from typing import Final

from dynashard.reads.sources import Position

DONE: Final = Position("")
"""The position after the last item of a virtual shard; no stored sort key is empty."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of all virtual shards.

    Attributes:
        at: one for each virtual shard: None before its first item, `DONE` after its last.
        turn: the shard to read next.
        version: in an index, that of the view under which the latest position was set.
    """

    at: tuple[Position | None, ...]
    turn: int = 0
    version: str = ""

    @property
    def done(self) -> bool:
        """Whether every virtual shard has been read to its end."""
        return all(position == DONE for position in self.at)

    def under(self, count: int) -> "Positions":
        """Return the same positions over `count` shards in which hashes place items."""
        virtual = len(self.at)
        at = self.at if count <= virtual else tuple(self.at[v & (virtual - 1)] for v in range(count))
        return replace(self, at=at, turn=self.turn % count)

    def among(self, count: int) -> "Positions":
        """Return the same positions over `count` shards in which items are placed at random."""
        new = (None,) * (count - len(self.at))
        return Positions(self.at[:count] + new, self.turn % count)

    def as_of(self, version: str) -> "Positions":
        """Return the same positions under a view of another version: index entries may have moved in between."""
        at = tuple(p if p is None or p == DONE else replace(p, stale=True) for p in self.at)
        return replace(self, at=at, version=version)

    def served(self, shard: int, count: int) -> range:
        """Return the virtual shards whose items a shard holds; `count` is at most their number."""
        return range(shard, len(self.at), count)

    def finished(self, shard: int, count: int) -> bool:
        """Whether nothing is left to read in a shard."""
        return all(self.at[v] == DONE for v in self.served(shard, count))

    def start(self, shard: int, count: int, *, forward: bool) -> Position | None:
        """Return where to continue in a shard; None for its beginning."""
        known: list[Position] = []
        for v in self.served(shard, count):
            at = self.at[v]
            if at is None:
                return None
            if at != DONE:
                known.append(at)
        first = (min if forward else max)(known, key=lambda position: position.sort)
        tied = {(p.item, p.shard, p.change, p.stale, p.forced) for p in known if p.sort == first.sort}
        # They differ among entries with equal sort keys: all of these are read again.
        return first if len(tied) == 1 else Position(first.sort)

    def last(self, shard: int, count: int, sort: str) -> list[Position]:
        """Return the positions in a shard that are at this sort key."""
        return [p for v in self.served(shard, count) if (p := self.at[v]) is not None and p.sort == sort]

    def counts(self, sort: str, virtual: int, *, forward: bool, again: bool = False) -> bool:
        """Whether an item of a virtual shard is beyond its position; `again` is the answer at equal sort keys."""
        at = self.at[virtual]
        if at is None:
            return True
        if at == DONE:
            return False
        if sort == at.sort:
            return again
        return (sort > at.sort) is forward

    def read(self, shard: int, count: int, last: Position | None, *, forward: bool) -> "Positions":
        """Return the positions after a shard was read up to `last`, or to its end if that is None."""
        at = list(self.at)
        for v in self.served(shard, count):
            if last is None:
                at[v] = DONE
            elif self.counts(last.sort, v, forward=forward, again=True):
                at[v] = last
        return replace(self, at=tuple(at))
