"""Fences: for each shard, a sort key before which an ordered listing has nothing left to read there.

A page reads beyond its end in most shards, so it learns where each goes on. The next page asks only the shards that go
on first, and the others only if it turns out to end later. A cursor has 9 bits for each shard: the next sort key as a
number (`scale`), rounded towards the page's end. The term is that of fence pointers in log-structured storage.

An item that is inserted before a fence is not seen, so a fence is confirmed after a while: its shard is asked again.
Shards take turns, one after the other, so that somebody who reads slowly pays a part of it with each page, instead of
all of it at once. A page asks all shards whose turns have come since the page before it, so the turn of that page says
which these are, and no shard's own turn is kept.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import ceil, inf, sqrt
from typing import Any, Final, NamedTuple

from msgspec import Struct

from dynashard.reads.scale import BEYOND_ALL, Scale, scale_of

LIFE_SECONDS: Final = 300
"""How long a fence holds if stored items keep their sort keys. Items inserted meanwhile, before the fence of their
shard, may be missed by the listing."""
MOVING_LIFE_SECONDS: Final = 15
"""How long it holds in an index in which an update can give an item another sort key: that is an insert there."""
_TURNS: Final = 256
"""How many turns a life has. So many shards have a turn each; of fewer, every turn is not used, and of more, some share
one."""
_MAX_SHARDS: Final = 1024
ENDED: Final = ""
"""The next sort key of a shard that was read to its end; no stored sort key is empty."""
_BITS: Final = 9
_ENDED_LEVEL: Final = (1 << _BITS) - 1
_SHIFT_BITS: Final = 6
ENDS: Final = frozenset({ENDED, BEYOND_ALL})
"""How the end of a shard is written as a place, downwards and upwards."""
_UNUSED: Final = (0, 0, 0, "0", 0)
"""Release 0.1.0 reads these in a cursor, and then finds that the first member is none of its shapes. It asks all shards
then. In its own cursors the second of them is not 0."""


class Ahead(NamedTuple):
    """Where a shard goes on: at this sort key, or just beyond it; `ENDED` if it does not."""

    sort: str
    beyond: bool = False


class Fences(Struct, frozen=True):
    """What a page has learned about the sort keys after it.

    Attributes:
        shape: the index slot, and for each logical partition the version of its layout, its number of shards, and the
            number of its epochs if it has some.
        turn: the turn of the page, counted from the epoch.
        scale: how sort keys are numbers; so many bits of them, `shift`, are left out.
        origin: the number of the page's end.
        levels: for each shard how far its fence is from there; 0 if nothing is known.
    """

    shape: Sequence[Any]
    turn: int
    scale: Scale
    shift: int
    origin: int
    levels: Sequence[int]

    def place(self, shard: int, *, forward: bool) -> tuple[str, float]:
        """Return the place up to which nothing is left in a shard, as the merge compares places."""
        level = self.levels[shard]
        if level == _ENDED_LEVEL:
            return BEYOND_ALL if forward else ENDED, inf
        # Numbers were rounded down. So upwards a fence is the beginning of its step, where something may be left, and
        # downwards it is the end of the step, where nothing is.
        number = self.origin + level if forward else self.origin - level + 1
        return self.scale.text(number << self.shift), -inf if forward else inf

    def parted(self, limit: int, turn: int) -> tuple[list[int], list[int]]:
        """Return the shards to ask first for the next `limit` items in a turn, and the others.

        The first are those that are expected to have one of these items, and those that are due.
        """
        going = sorted(level for level in self.levels if level != _ENDED_LEVEL) or [_ENDED_LEVEL]
        # If items come to n shards at random, so many of these have none of the next P, with this variance.
        n = len(going)
        empty = (1 - 1 / n) ** limit
        variance = n * empty * (1 - (1 + limit / n) * empty)
        last = going[min(n, ceil(n * (1 - empty) + sqrt(max(0.0, variance)))) - 1]
        first, others = list[int](), list[int]()
        for shard, level in enumerate(self.levels):
            (first if level <= last or self.due(shard, turn) else others).append(shard)
        return first, others

    def due(self, shard: int, turn: int) -> bool:
        """Return whether the turn of a shard has come since the page, so that no fence is used longer than its life."""
        since = turn - self.turn
        # What another clock learned in the future is not used either.
        return since < 0 or (turn - shard * _TURNS // len(self.levels)) % _TURNS < since

    def pack(self) -> list[Any]:
        """Return it as JSON values. The page's end is not repeated: the cursor has it as a position."""
        bits = _BITS * len(self.levels)
        number = sum(level << _BITS * shard for shard, level in enumerate(self.levels))
        number |= (self.turn << _SHIFT_BITS | self.shift) << bits
        packed = b64encode(number.to_bytes(ceil(number.bit_length() / 8))).decode()
        return [[self.shape, self.scale.prefix, self.scale.alphabets], *_UNUSED, packed]

    @classmethod
    def unpack(cls, state: Sequence[Any], end: str) -> "Fences | None":
        """Return what `pack` wrote after a page that ended at a sort key; None for what release 0.1.0 wrote."""
        about, *unused, packed = state
        if tuple(unused) != _UNUSED:
            return None
        shape, prefix, alphabets = about
        number, count = int.from_bytes(b64decode(packed)), sum(shards for _, shards, *_ in shape[1:])
        levels = [number >> _BITS * shard & _ENDED_LEVEL for shard in range(count)]
        turn, shift = divmod(number >> _BITS * count, 1 << _SHIFT_BITS)
        scale = Scale(prefix, alphabets)
        return cls(shape, turn, scale, shift, scale.number(end) >> shift, levels)


def turn_of(now: float, life: float) -> int:
    """Return the turn at a time, in epoch seconds, of fences that hold for so long."""
    return int(now * _TURNS // life)


def fences_after(shape: Sequence[Any], turn: int, end: str, ahead: Sequence[Ahead], *, forward: bool) -> Fences | None:
    """Return the fences after a page in a turn that ended at a sort key.

    `ahead` says for each shard where it goes on at the earliest. None if these are too many, or share too long a
    beginning.
    """
    if len(ahead) > _MAX_SHARDS:
        return None
    going = [each for each in ahead if each.sort not in ENDS]
    furthest = (max if forward else min)((each.sort for each in going), default=end)
    scale = scale_of(end, furthest, (end, *(each.sort for each in going if not each.beyond)))
    if scale is None:
        return None
    first, last = scale.number(end), scale.number(furthest)
    # Rounded like this, a fence stays where it is when later pages round it again.
    shift = max(0, abs(last - first).bit_length() - _BITS)
    # One level less than there are: `level` may go one number beyond the furthest place.
    while abs((last >> shift) - (first >> shift)) >= _ENDED_LEVEL - 1:
        shift += 1
    origin, sign = first >> shift, 1 if forward else -1

    def level(place: Ahead) -> int:
        if place.sort in ENDS:
            return _ENDED_LEVEL
        number = scale.number(place.sort)
        if place.beyond and not forward and scale.text(number) == place.sort:
            # All texts before it have earlier numbers.
            number -= 1
        return max(0, sign * ((number >> shift) - origin))

    return Fences(shape, turn, scale, shift, origin, list(map(level, ahead)))
