"""Fences: for each shard, a sort key before which an ordered listing has nothing left to read there.

A page reads beyond its end in most shards, so it learns where each goes on. The next page asks only the shards that go
on first, and the others only if it turns out to end later. A cursor has 9 bits for each shard: the next sort key as a
number (`scale`), rounded towards the page's end. The term is that of fence pointers in log-structured storage.

An item that is inserted before a fence is not seen, so a fence is confirmed after a while: its shard is asked again.
Shards take turns, so that somebody who reads slowly pays a part of it with each page, instead of all of it at once.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any, Final, NamedTuple

from dynashard.reads.scale import BEYOND_ALL, Scale, scale_of

LIFE_SECONDS: Final = 300
"""How long a fence holds if stored items keep their sort keys. Items inserted meanwhile, before the fence of their
shard, may be missed by the listing."""
MOVING_LIFE_SECONDS: Final = 15
"""How long it holds in an index in which an update can give an item another sort key: that is an insert there."""
_TURNS: Final = 16
"""How many turns a life has. Groups of shards are confirmed one after the other, each in a turn of its own."""
_TURN_BITS: Final = 5
_MAX_SHARDS: Final = 1024
ENDED: Final = ""
"""The next sort key of a shard that was read to its end; no stored sort key is empty."""
_BITS: Final = 9
_ENDED_LEVEL: Final = (1 << _BITS) - 1
_ENDS: Final = frozenset({ENDED, BEYOND_ALL})


class Ahead(NamedTuple):
    """Where a shard goes on: at this sort key, or just beyond it; `ENDED` if it does not."""

    sort: str
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Fences:
    """What a page has learned about the sort keys after it.

    Attributes:
        shape: the index slot, and for each logical partition the version of its layout and its number of shards.
        asked: for each group of shards the turn in which all of it was asked last, counted from the epoch. A shard's
            number modulo the number of groups is its group.
        scale: how sort keys are numbers; so many bits of them, `shift`, are left out.
        origin: the number of the page's end.
        levels: for each shard how far its fence is from there; 0 if nothing is known.
    """

    shape: Sequence[Any]
    asked: Sequence[int]
    scale: Scale
    shift: int
    origin: int
    levels: Sequence[int]

    def place(self, shard: int, *, forward: bool) -> tuple[str, float]:
        """Return the place up to which nothing is left in a shard, as the merge compares places."""
        level = self.levels[shard]
        if level == _ENDED_LEVEL:
            return BEYOND_ALL if forward else ENDED, inf
        number = self.origin + level if forward else self.origin - level + 1
        # Downwards, nothing is left at the text itself either.
        return self.scale.text(number << self.shift), -inf if forward else inf

    def parted(self, limit: int, due: Collection[int] = ()) -> tuple[list[int], list[int]]:
        """Return the shards to ask first for the next `limit` items, and the others.

        The first are those that are expected to have one of these items, and those of the groups that are `due`.
        """
        going = sorted(level for level in self.levels if level != _ENDED_LEVEL) or [_ENDED_LEVEL]
        # If items come to n shards at random, so many of these have none of the next P, with this variance.
        n = len(going)
        empty = (1 - 1 / n) ** limit
        variance = n * empty * (1 - (1 + limit / n) * empty)
        last = going[min(n, ceil(n * (1 - empty) + sqrt(max(0.0, variance)))) - 1]
        first, others = list[int](), list[int]()
        for shard, level in enumerate(self.levels):
            (first if level <= last or shard % len(self.asked) in due else others).append(shard)
        return first, others

    def asked_in(self, shard: int) -> int:
        """Return the turn in which a shard was asked last, as far as is known."""
        return self.asked[shard % len(self.asked)]

    def due(self, turn: int) -> set[int]:
        """Return the groups of shards that are to be asked in a turn, so that no fence is used longer than its life."""
        groups = len(self.asked)
        # What another clock learned in the future is not used either.
        return {group for group, asked in enumerate(self.asked) if not turn - (turn - group) % groups <= asked <= turn}

    def pack(self) -> list[Any]:
        """Return it as JSON values."""
        oldest, bits = min(self.asked), _BITS * len(self.levels)
        number = sum(level << _BITS * shard for shard, level in enumerate(self.levels))
        for group, asked in enumerate(self.asked):
            number |= min(asked - oldest, (1 << _TURN_BITS) - 1) << bits + _TURN_BITS * group
        packed = b64encode(number.to_bytes(ceil((bits + _TURN_BITS * len(self.asked)) / 8))).decode()
        # Releases that number sort keys in one way only compare the first member with a shape, and ask every shard.
        about = [self.shape, self.scale.prefix, self.scale.alphabets]
        return [about, oldest, 0, self.shift, f"{self.origin:x}", len(self.levels), packed]

    @classmethod
    def unpack(cls, state: Sequence[Any]) -> "Fences | None":
        """Return what `pack` wrote; None for what a release wrote that numbers sort keys in one way only."""
        about, oldest, digits, shift, origin, count, packed = state
        if digits:
            return None
        shape, prefix, alphabets = about
        number = int.from_bytes(b64decode(packed))
        levels = [number >> _BITS * shard & _ENDED_LEVEL for shard in range(count)]
        turns = number >> _BITS * count
        asked = [oldest + (turns >> _TURN_BITS * group & (1 << _TURN_BITS) - 1) for group in range(_groups(count))]
        return cls(shape, asked, Scale(prefix, alphabets), shift, int(origin, 16), levels)


def turn_of(now: float, life: float) -> int:
    """Return the turn at a time, in epoch seconds, of fences that hold for so long."""
    return int(now * _TURNS // life)


def _groups(shards: int) -> int:
    return min(_TURNS, shards)


def fences_after(
    shape: Sequence[Any], asked: Sequence[int], end: str, ahead: Sequence[Ahead], *, forward: bool
) -> Fences | None:
    """Return the fences after a page that ended at a sort key.

    `ahead` says for each shard where it goes on at the earliest, and `asked` in which turn that was learned. None if
    these are too many, or share too long a beginning.
    """
    if len(ahead) > _MAX_SHARDS:
        return None
    going = [each for each in ahead if each.sort not in _ENDS]
    furthest = (max if forward else min)((each.sort for each in going), default=end)
    scale = scale_of(end, furthest, (end, *(each.sort for each in going if not each.beyond)))
    if scale is None:
        return None
    first, last = scale.number(end), scale.number(furthest)
    # Rounded like this, a fence stays where it is when later pages round it again.
    shift = max(0, abs(last - first).bit_length() - _BITS)
    while abs((last >> shift) - (first >> shift)) >= _ENDED_LEVEL - 1:
        shift += 1
    origin, sign = first >> shift, 1 if forward else -1

    def level(place: Ahead) -> int:
        if place.sort in _ENDS:
            return _ENDED_LEVEL
        number = scale.number(place.sort)
        if place.beyond and not forward and scale.text(number) == place.sort:
            # All texts before it have earlier numbers.
            number -= 1
        return max(0, sign * ((number >> shift) - origin))

    groups = _groups(len(ahead))
    turns = [min(asked[group::groups]) for group in range(groups)]
    return Fences(shape, turns, scale, shift, origin, list(map(level, ahead)))
