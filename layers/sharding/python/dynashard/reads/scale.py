"""Numbers of sort keys: a mixed radix, with a digit for each character after those that all keys share.

The digits of a place are the characters that keys have there, as far as some keys show: ten for a decimal digit, one
for a colon of a time. With the same digits at each place, most numbers would stand for no key, and rounding a number
would step over many keys.
"""

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import zip_longest
from math import prod
from string import ascii_lowercase, ascii_uppercase, digits
from sys import maxunicode
from typing import Final

from msgspec import Struct

BEYOND_ALL: Final = chr(maxunicode) * 257
"""A text that comes after all sort keys."""
MAX_PREFIX: Final = 64
_PRINTABLE: Final = "~"
_ALPHABETS: Final = {
    "0": digits,
    "f": digits + "abcdef",
    "F": digits + "ABCDEF",
    "z": digits + ascii_lowercase,
    "Z": digits + ascii_uppercase,
    "a": digits + ascii_uppercase + ascii_lowercase,
    _PRINTABLE: "".join(map(chr, range(ord(" "), ord("~") + 1))),
}
"""The alphabets of a place by name, the smallest first."""
_ONLY: Final = "="
"""Stands before the only character of a place."""
_NUMBERS: Final = 1 << 48
"""How many numbers suffice."""
_PLACES: Final = 32
"""How many places count at most."""


class Scale(Struct, frozen=True):
    """How sort keys with a common beginning are numbered. Numbers never fall as keys rise.

    Attributes:
        prefix: the common beginning, which is not numbered.
        alphabets: the names of the alphabets of the places after it, such as `000=T00` for three decimal digits, a T
            and two more digits.
    """

    prefix: str
    alphabets: str

    def number(self, key: str) -> int:
        """Return the number of a sort key."""
        prefix, places = self.prefix, _places(self.alphabets)
        total = prod(map(len, places))
        if not key.startswith(prefix):
            return 0 if key < prefix else total - 1
        number, left = 0, total
        for alphabet, character in zip(places, key[len(prefix) :], strict=False):
            left //= len(alphabet)
            digit = bisect_right(alphabet, character) - 1
            if digit < 0:
                break
            number += digit * left
            if alphabet[digit] != character:
                # It comes after all keys that have the digit's character here.
                return number + left - 1
        return number

    def text(self, number: int) -> str:
        """Return the smallest text with this number or a later one, so that all texts before it have earlier ones.

        0 is the number of the prefix and of all texts before it; what is returned is the prefix.
        """
        places, figures = _places(self.alphabets), list[str]()
        for alphabet in reversed(places):
            number, digit = divmod(number, len(alphabet))
            if digit or figures:
                figures.append(alphabet[digit])
        return BEYOND_ALL if number else self.prefix + "".join(reversed(figures))


def scale_of(first: str, last: str, keys: Iterable[str]) -> Scale | None:
    """Return a scale for sort keys from one to another; `keys` show which characters there are.

    None if all share too long a beginning.
    """
    shared = next((i for i, (a, b) in enumerate(zip_longest(first, last)) if a != b), len(first))
    if shared > MAX_PREFIX:
        return None
    prefix, names, numbers = first[:shared], "", 1
    ends = [key[shared : shared + _PLACES] for key in keys if key.startswith(prefix)]
    for characters in zip_longest(*ends, fillvalue=""):
        name = _name({character for character in characters if character})
        names, numbers = names + name, numbers * len(_places(name)[0])
        if numbers >= _NUMBERS:
            break
    return Scale(prefix, names)


def _name(characters: set[str]) -> str:
    """Return the name of the smallest alphabet with these characters; what none has comes after one that it has."""
    if len(characters) == 1:
        return _ONLY + characters.pop()
    fitting = (name for name, alphabet in _ALPHABETS.items() if characters.issubset(alphabet))
    return next(fitting, _PRINTABLE)


@lru_cache(256)
def _places(names: str) -> tuple[str, ...]:
    """Return the alphabet of each place."""
    places, rest = list[str](), iter(names)
    for name in rest:
        places.append(next(rest) if name == _ONLY else _ALPHABETS[name])
    return tuple(places)
