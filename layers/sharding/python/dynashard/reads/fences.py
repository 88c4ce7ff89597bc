"""Fences: for each shard, a sort key before which an ordered listing has nothing left to read there.

A page reads beyond its end in most shards, so it learns where each goes on. The next page asks only the shards that go
on first, and the others only if it turns out to end later. A cursor has 9 bits for each shard: the next sort key as a
number, rounded towards the page's end. The term is that of fence pointers in log-structured storage.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from sys import maxunicode
from typing import Any, Final

MAX_AGE_SECONDS: Final = 15
"""How long fences hold. Items inserted meanwhile, before the fence of their shard, may be missed by the listing."""
_MAX_SHARDS: Final = 1024
ENDED: Final = ""
"""The next sort key of a shard that was read to its end; no stored sort key is empty."""
_BITS: Final = 9
_ENDED_LEVEL: Final = (1 << _BITS) - 1
_BASE: Final = 97
"""A digit for each printable character of ASCII, one for all characters before them and one for all after them."""
_BEFORE: Final = 31
_DIGITS: Final = 8
"""How many characters count after those that all next sort keys share."""
_MAX_SHARED: Final = 64
_BEYOND_ALL: Final = chr(maxunicode) * 257
_ENDS: Final = frozenset({ENDED, _BEYOND_ALL})


@dataclass(frozen=True, slots=True)
class Fences:
    """What a page has learned about the sort keys after it.

    Attributes:
        shape: the index slot, and for each logical partition the version of its layout and its number of shards.
        learned: since when all of this holds, in epoch seconds.
        digits, shift: the first so many characters of a sort key are a number, and so many of its bits are left out.
        origin: the number of the page's end.
        levels: for each shard how far its fence is from there; 0 if nothing is known.
    """

    shape: Sequence[Any]
    learned: int
    digits: int
    shift: int
    origin: int
    levels: Sequence[int]

    def holds(self, shape: Sequence[Any], now: float) -> bool:
        """Whether this is true of a layout now."""
        return self.shape == shape and 0 <= now - self.learned <= MAX_AGE_SECONDS

    def place(self, shard: int, *, forward: bool) -> tuple[str, float]:
        """Return the place up to which nothing is left in a shard, as the merge compares places."""
        level = self.levels[shard]
        if level == _ENDED_LEVEL:
            return _BEYOND_ALL if forward else ENDED, inf
        number = self.origin + level if forward else self.origin - level + 1
        return _text((number << self.shift) - (not forward), self.digits, forward=forward), -inf

    def parted(self, limit: int) -> tuple[list[int], list[int]]:
        """Return the shards that are expected to have one of the next `limit` items, and the others."""
        going = sorted(level for level in self.levels if level != _ENDED_LEVEL) or [_ENDED_LEVEL]
        # If items come to n shards at random, so many of these have none of the next P, with this variance.
        n = len(going)
        empty = (1 - 1 / n) ** limit
        variance = n * empty * (1 - (1 + limit / n) * empty)
        last = going[min(n, ceil(n * (1 - empty) + sqrt(max(0.0, variance)))) - 1]
        first = [shard for shard, level in enumerate(self.levels) if level <= last]
        return first, [shard for shard, level in enumerate(self.levels) if level > last]

    def pack(self) -> list[Any]:
        """Return it as JSON values."""
        number = sum(level << _BITS * shard for shard, level in enumerate(self.levels))
        packed = b64encode(number.to_bytes(ceil(len(self.levels) * _BITS / 8))).decode()
        return [self.shape, self.learned, self.digits, self.shift, f"{self.origin:x}", len(self.levels), packed]

    @classmethod
    def unpack(cls, state: Sequence[Any]) -> "Fences":
        """Return what `pack` wrote."""
        shape, learned, digits, shift, origin, count, packed = state
        number = int.from_bytes(b64decode(packed))
        levels = [number >> _BITS * shard & _ENDED_LEVEL for shard in range(count)]
        return cls(shape, learned, digits, shift, int(origin, 16), levels)


def fences_after(
    shape: Sequence[Any], learned: float, end: str, ahead: Sequence[str], *, forward: bool
) -> Fences | None:
    """Return the fences after a page that ended at a sort key.

    `ahead` has a sort key for each shard before which nothing is left in it, or where it ended. None if these are too
    many, or share too long a beginning.
    """
    furthest = (max if forward else min)((key for key in ahead if key not in _ENDS), default=end)
    shared = next((i for i, (a, b) in enumerate(zip(end, furthest, strict=False)) if a != b), 0)
    if shared > _MAX_SHARED or len(ahead) > _MAX_SHARDS:
        return None
    digits = shared + _DIGITS
    first, last = _number(end, digits), _number(furthest, digits)
    # Rounded like this, a fence stays where it is when later pages round it again.
    shift = max(0, abs(last - first).bit_length() - _BITS)
    while abs((last >> shift) - (first >> shift)) >= _ENDED_LEVEL:
        shift += 1
    origin, sign = first >> shift, 1 if forward else -1
    levels = [
        _ENDED_LEVEL if key in _ENDS else max(0, sign * ((_number(key, digits) >> shift) - origin)) for key in ahead
    ]
    return Fences(shape, int(learned), digits, shift, origin, levels)


def _number(key: str, digits: int) -> int:
    """Return a number of the first characters of a sort key, which never falls as keys rise."""
    number = 0
    for used, character in enumerate(key[:digits].ljust(digits, "\0")):
        digit = ord(character) - _BEFORE
        if not 0 < digit < _BASE - 1:
            # Characters after one that shares its digit with others say nothing about the order.
            return int((number * _BASE + min(max(digit, 0), _BASE - 1)) * _BASE ** (digits - used - 1))
        number = number * _BASE + digit
    return number


def _text(number: int, digits: int, *, forward: bool) -> str:
    """Return a text that comes, in reading order, before all texts with this number or later ones."""
    text = ""
    for power in [_BASE**place for place in range(digits)][::-1]:
        digit = number // power % _BASE
        if digit == 0:
            return text if forward else text + " "
        text += chr(_BEFORE + digit) if forward or digit < _BASE - 1 else ""
        if digit == _BASE - 1:
            break
    return text if forward else text + _BEYOND_ALL
