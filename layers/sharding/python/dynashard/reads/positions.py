"""How far a round-robin or shard-ordered listing has come, kept for each virtual shard.

A virtual shard is `hash & (V-1)` for the count V under which the listing began or was last seen to grow. Kept so, a
position outlives a change of the shard count: when shards split, each child inherits its parent's position; when
they merge, the shard is read from the earliest position of those it took in, and an item counts only if it lies
beyond the position of its own virtual shard.
"""

from dataclasses import dataclass, replace
from typing import Final

from dynashard.reads.sources import Position

DONE: Final = ("",)
"""The position of a virtual shard that has been read to its end; no stored sort key is empty."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of all virtual shards.

    Attributes:
        at: one a virtual shard: None before its first item, `DONE` after its last.
        turn: the shard to be read next.
    """

    at: tuple[Position | None, ...]
    turn: int = 0

    @classmethod
    def beginning(cls, count: int) -> "Positions":
        """The start of a listing over `count` shards."""
        return cls((None,) * count)

    @property
    def done(self) -> bool:
        """Whether every virtual shard has been read to its end."""
        return all(position == DONE for position in self.at)

    def under(self, count: int) -> "Positions":
        """The same positions for a listing that now meets `count` shards."""
        virtual = len(self.at)
        turn = self.turn % count
        if count > virtual:
            return Positions(tuple(self.at[v & (virtual - 1)] for v in range(count)), turn)
        return self if turn == self.turn else replace(self, turn=turn)

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
        return min(known) if forward else max(known)

    def counts(self, position: Position, virtual: int, *, forward: bool) -> bool:
        """Whether an item at a position has not been returned before."""
        at = self.at[virtual]
        if at is None:
            return True
        if at == DONE:
            return False
        return position > at if forward else position < at

    def read(self, shard: int, count: int, last: Position | None, *, forward: bool) -> "Positions":
        """The positions after a shard was read up to `last`, or to its end if that is None."""
        at = list(self.at)
        served = self.served(shard, count)
        for v in served:
            if last is None:
                at[v] = DONE
            elif len(served) == 1 or self.counts(last, v, forward=forward):
                # Alone, a position goes where the shard was read to, unquestioned: nothing says in what order
                # DynamoDB keeps the entries of an index that have equal sort keys.
                at[v] = last
        return replace(self, at=tuple(at))
