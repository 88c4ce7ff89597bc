"""The keyset positions of a round-robin or shard-ordered listing, one for each virtual shard.

A virtual shard is `hash & (V-1)` for the count V under which the listing began or was last seen to grow. So positions
outlive a resize: when shards split, each child inherits its parent's position; when they merge, the
shard is read from the earliest position of its virtual shards, and an item counts only if it is beyond the position of
its own virtual shard. Items that are placed at random have no virtual shards, so positions are those of the shards.

A set of virtual shards is a bit mask. Work and memory grow with the positions that are open, not with the shards.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.reads.sources import Position

WINDOW: Final = 16
"""How many positions a listing that takes turns keeps open, so that its cursor stays short at any count."""
MAX_WEIGHT: Final = 2048
"""How many bytes these positions may have before shards are read to their end one by one."""
DONE: Final = Position("")
"""The position after the last item of a virtual shard; no stored sort key is empty."""


class Positions(Struct, frozen=True):
    """Positions of all virtual shards.

    Attributes:
        size: how many virtual shards there are.
        done: the virtual shards that were read to their end.
        open: each position inside a virtual shard, with the virtual shards that are at it; all others have not begun.
        turn: the shard to read next, modulo their number, which may have become smaller.
        version: in an index, that of the view under which the latest position was set.
    """

    size: int
    done: int = 0
    open: tuple[tuple[Position, int], ...] = ()
    turn: int = 0
    version: str = ""

    @property
    def ended(self) -> bool:
        """Whether every virtual shard has been read to its end."""
        return self.done == (1 << self.size) - 1

    @property
    def weights(self) -> list[int]:
        """The bytes of each open position."""
        return [position.weight for position, _ in self.open]

    @property
    def weight(self) -> int:
        """The bytes of all open positions."""
        return sum(self.weights)

    def at(self, virtual: int) -> Position | None:
        """Return the position of a virtual shard: None before its first item, `DONE` after its last."""
        if self.done >> virtual & 1:
            return DONE
        for position, where in self.open:
            if where >> virtual & 1:
                return position
        return None

    def under(self, count: int) -> "Positions":
        """Return the same positions over `count` shards in which hashes place items."""
        if count <= self.size:
            # Merged shards still hold items of these virtual shards, each with its own position.
            return self
        # The product with a bit at every multiple of `size` copies the mask there: v + k * size are the children of v.
        children = _every(self.size, count)
        open_ = tuple((position, where * children) for position, where in self.open)
        return replace(self, size=count, done=self.done * children, open=open_)

    def among(self, count: int) -> "Positions":
        """Return the same positions over `count` shards in which items are placed at random."""
        # A smaller count loses no items: readers of random placement narrow only when the other shards are empty.
        kept = (1 << count) - 1
        open_ = tuple((position, where & kept) for position, where in self.open if where & kept)
        return Positions(count, self.done & kept, open_, self.turn)

    def as_of(self, version: str) -> "Positions":
        """Return the same positions under a view of another version: index entries may have moved in between."""
        open_ = tuple((position._replace(stale=True), where) for position, where in self.open)
        return replace(self, open=open_, version=version)

    def left(self, count: int) -> int:
        """Return the shards in which something is left to read; `count` is at most the number of virtual shards."""
        return _folded(~self.done & ((1 << self.size) - 1), count)

    def alone(self, count: int) -> int:
        """Return the shards that can be read on without one more position: all begun, with one that no other has."""
        if not self.open:
            return 0
        alone, begun = 0, self.done
        for _, where in self.open:
            begun |= where
            shards = _folded(where, count)
            alone |= shards if shards.bit_count() == 1 else 0
        return alone & ~_folded(~begun & ((1 << self.size) - 1), count)

    def start(self, shard: int, count: int, *, forward: bool) -> Position | None:
        """Return where to continue in a shard; None for its beginning."""
        if not self.open:
            return None
        left = self._served(shard, count) & ~self.done
        known = [position for position, where in self.open if where & left]
        # Masks of different positions have no bit in common, so their sum is their union. What none of them has has
        # not begun, and may hold items before all positions.
        if left & ~sum(where for _, where in self.open):
            return None
        first = (min if forward else max)(known, key=lambda position: position.sort)
        tied = {(p.item, p.shard, p.resize, p.stale, p.forced, p.side) for p in known if p.sort == first.sort}
        # They differ among entries with equal sort keys: all of these are read again.
        return first if len(tied) == 1 else Position(first.sort, side=-1)

    def last(self, shard: int, count: int, sort: str) -> list[Position]:
        """Return the positions in a shard that are at this sort key."""
        served = self._served(shard, count)
        return [position for position, where in self.open if where & served and position.sort == sort]

    def counts(self, sort: str, virtual: int, *, forward: bool) -> bool:
        """Whether an item of a virtual shard is beyond its position."""
        at = self.at(virtual)
        return at is None or (at is not DONE and sort != at.sort and (sort > at.sort) is forward)

    def read(self, shards: int, count: int, last: Position | None, *, forward: bool) -> "Positions":
        """Return the positions after these shards were read up to `last`, or to their end if that is None."""
        moved = _every(count, self.size) * shards
        if last is None:
            open_ = tuple((position, rest) for position, where in self.open if (rest := where & ~moved))
            return Positions(self.size, self.done | moved, open_, self.turn, self.version)
        # Virtual shards that are further already stay there: the read began at the earliest position of its shard.
        moved &= ~self.done
        for position, where in self.open:
            beyond = (position.sort > last.sort) is forward
            # At one sort key, `side` orders positions: before all of its items, at one of them, beyond all.
            if position.side > last.side if position.sort == last.sort else beyond:
                moved &= ~where
        kept = []
        for position, where in self.open:
            if position == last:
                # One entry for all that are at one place keeps the cursor short.
                moved |= where
            elif rest := where & ~moved:
                kept.append((position, rest))
        open_ = (*kept, (last, moved)) if moved else tuple(kept)
        return Positions(self.size, self.done, open_, self.turn, self.version)

    def _served(self, shard: int, count: int) -> int:
        """The virtual shards whose items a shard holds."""
        return _every(count, self.size) << shard


def bits(mask: int, first: int = 0) -> Iterator[int]:
    """Yield the numbers of the set bits, from `first` on and then those before it."""
    for rest in (mask >> first << first, mask & ((1 << first) - 1)):
        left = rest
        while left:
            yield (left & -left).bit_length() - 1
            left &= left - 1


def _every(step: int, end: int) -> int:
    """The numbers 0, `step`, 2 `step` and so on before `end`, a multiple of `step`."""
    # The sum of a geometric series with the ratio 2 ** step.
    return ((1 << end) - 1) // ((1 << step) - 1)


def _folded(virtual: int, count: int) -> int:
    """The shards that serve virtual shards."""
    shards = 0
    while virtual:
        shards |= virtual & ((1 << count) - 1)
        virtual >>= count
    return shards
