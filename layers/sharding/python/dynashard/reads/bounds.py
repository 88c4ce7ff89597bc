"""Ranges of sort keys, and the one key condition that DynamoDB takes for each.

DynamoDB compares texts by their UTF-8 bytes, which is the order of Python's strings too.
"""

import sys
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.schema import MAX_SORT_KEY_BYTES

_LAST: Final = chr(sys.maxunicode)
_BEFORE_SURROGATES: Final = "\ud7ff"
_AFTER_SURROGATES: Final = "\ue000"


class Bounds(Struct, frozen=True):
    """The sort keys from `low` to `high`; None leaves a side open, `*_open` leaves the bound itself out."""

    low: str | None = None
    high: str | None = None
    low_open: bool = False
    high_open: bool = False

    @classmethod
    def of(cls, *, prefix: str | None, start: str | None, end: str | None) -> "Bounds":
        """Return the keys that begin with `prefix`, or those from `start` up to, but not including, `end`."""
        if prefix:
            # A range, because the local engine's `begins_with` ignores case.
            after = _after_prefix(prefix)
            if after is not None and not _fits(after):
                # The prefix is as long as a sort key may be.
                return cls(low=prefix, high=prefix)
            return cls(low=prefix, high=after, high_open=True)
        return cls(low=start, high=end, high_open=True)

    @property
    def empty(self) -> bool:
        """Whether no key can lie between the bounds."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def after(self, key: str, *, forward: bool) -> "Bounds":
        """Return the keys beyond `key`."""
        return replace(self, low=key, low_open=True) if forward else replace(self, high=key, high_open=True)

    def at(self, key: str, *, forward: bool) -> "Bounds":
        """Return the keys from `key` on."""
        return replace(self, low=key, low_open=False) if forward else replace(self, high=key, high_open=False)

    def until(self, key: str, *, forward: bool) -> "Bounds":
        """Return the keys up to `key` in reading order."""
        return self.at(key, forward=not forward)

    def within(self, other: "Bounds") -> "Bounds":
        """Return the keys that lie between these bounds and those of another."""
        low, high = self, self
        if other.low is not None and (low.low is None or (other.low, other.low_open) > (low.low, low.low_open)):
            low = other
        if other.high is not None and (
            high.high is None or (other.high, not other.high_open) < (high.high, not high.high_open)
        ):
            high = other
        return Bounds(low.low, high.high, low.low_open, high.high_open)

    def condition(self, attribute: str, *, forward: bool) -> tuple[str, dict[str, dict[str, str]]]:
        """Return the condition on the sort key, '' for none, and its values. It may admit keys beyond the far end."""
        low, high = self.low, self.high
        if low is not None and high is not None:
            # The next text after another is that text and a NUL; there is no last text before another.
            first = low + "\0" if self.low_open else low
            if (forward or not self.high_open) and _fits(first):
                return f"{attribute} BETWEEN :low AND :high", {":low": {"S": first}, ":high": {"S": high}}
            low, high = (low, None) if forward else (None, high)
        if low is not None:
            return f"{attribute} {'>' if self.low_open else '>='} :low", {":low": {"S": low}}
        if high is not None:
            return f"{attribute} {'<' if self.high_open else '<='} :high", {":high": {"S": high}}
        return "", {}

    def contains(self, key: str) -> bool:
        """Whether a key lies between the bounds."""
        if self.low is not None and (key < self.low or (self.low_open and key == self.low)):
            return False
        return self.high is None or key < self.high or (key == self.high and not self.high_open)


def _fits(text: str) -> bool:
    return len(text.encode()) <= MAX_SORT_KEY_BYTES


def _after_prefix(prefix: str) -> str | None:
    """The smallest text after all that begin with `prefix`; None if there is none."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return None
    last = stem[-1]
    return stem[:-1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))
