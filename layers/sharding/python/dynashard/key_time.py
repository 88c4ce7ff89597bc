"""The time that a sort key begins with: its moment, and the first sort key of a moment.

Sort keys of one format sort as their times do, so a moment divides them: all keys before `first(moment)` are of earlier
times. Moments are epoch seconds. A key's moment is its time, rounded down to the precision of its format.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct

_MICROSECOND: Final = 1
_MILLISECOND: Final = 1_000
_SECOND: Final = 1_000_000


class TimeFormat(Struct, frozen=True, eq=False):
    """A format of sort keys that begin with their time.

    Attributes:
        name: what people call it.
        pattern: matches the beginning of every sort key of this format, and no other text.
        unit: the microseconds between two times that it distinguishes.
        last: the greatest text of the format that is valid; None if all that match are.
    """

    name: str
    pattern: re.Pattern[str]
    unit: int
    _units_of: Callable[[str], int]
    _text_of: Callable[[int], str]
    last: str | None = None

    def matches(self, sort: str) -> bool:
        """Whether a sort key begins with a time of this format."""
        found = self.pattern.match(sort)
        return found is not None and (self.last is None or found[0] <= self.last)

    def moment(self, sort: str) -> float | None:
        """Return the moment of a sort key; None if it does not begin with a time of this format."""
        if not self.matches(sort):
            return None
        try:
            return self.moment_of(sort)
        except ValueError:
            # Such as a 31st of February, which no value is written as.
            return None

    def moment_of(self, first: str) -> float:
        """Return the moment whose first sort key is this text; raises `ValueError` if it is not one."""
        return self._units_of(first) * self.unit / 1_000_000

    def first(self, moment: float) -> str:
        """Return the first sort key of a moment: those before it are of earlier times, all others are not.

        Times that the format cannot express are rounded: up to the next one that it can, or to its first or last.
        """
        return self._text_of(-(-round(moment * 1_000_000) // self.unit))


_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KSUID_LENGTH: Final = 27
_KSUID_EPOCH: Final = 1_400_000_000
_PAYLOAD_BITS: Final = 128


def _ksuid_seconds(sort: str) -> int:
    number = 0
    for character in sort[:_KSUID_LENGTH]:
        number = number * 62 + _BASE62.index(character)
    return (number >> _PAYLOAD_BITS) + _KSUID_EPOCH


def _ksuid_text(seconds: int) -> str:
    number = min(max(seconds - _KSUID_EPOCH, 0), 2**32 - 1) << _PAYLOAD_BITS
    digits = []
    for _ in range(_KSUID_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))


KSUID: Final = TimeFormat(
    "KSUID",
    re.compile(f"[0-9A-Za-z]{{{_KSUID_LENGTH}}}"),
    _SECOND,
    _ksuid_seconds,
    _ksuid_text,
    last="aWgEPTl1tmebfsQzFP4bxwgy80V",
)
"""27 characters, such as those of `new_id()`: seconds, and 16 random bytes. Source: github.com/segmentio/ksuid."""

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_TIME: Final = 10
_MOST_MILLISECONDS: Final = 2**48 - 1


def _ulid_milliseconds(sort: str) -> int:
    number = 0
    for character in sort[:_ULID_TIME]:
        number = number * 32 + _CROCKFORD.index(character)
    return number


def _ulid_text(milliseconds: int) -> str:
    number = min(max(milliseconds, 0), _MOST_MILLISECONDS)
    return "".join(_CROCKFORD[number >> 5 * place & 31] for place in reversed(range(_ULID_TIME)))


ULID: Final = TimeFormat(
    "ULID", re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}"), _MILLISECOND, _ulid_milliseconds, _ulid_text
)
"""26 characters in upper case: milliseconds, and 10 random bytes. Source: github.com/ulid/spec."""


def _uuid_milliseconds(sort: str) -> int:
    return int(sort[:8] + sort[9:13], 16)


def _uuid_text(milliseconds: int) -> str:
    digits = f"{min(max(milliseconds, 0), _MOST_MILLISECONDS):012x}"
    return f"{digits[:8]}-{digits[8:]}"


UUID7: Final = TimeFormat(
    "UUIDv7",
    re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    _MILLISECOND,
    _uuid_milliseconds,
    _uuid_text,
)
"""36 characters in lower case: milliseconds, and random bits. Source: RFC 9562, section 5.7."""

_DIRECTIVES: Final = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6}
"""The parts of a time by their letters in formats, with their digits, from the longest to the shortest."""
_IN_ORDER: Final = "YmdHMSf"
_PLAIN: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
"""What a time without a format of its own is written as."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache
def moment_format(spec: str = "") -> TimeFormat:
    """Return the format of moments that `strftime` writes by a pattern such as `%Y%m%dT%H%M%SZ`.

    An empty pattern is that of a field without one.

    Raises `ValueError` with the reason if its texts do not sort as their times do, or do not distinguish seconds.
    """
    letters, pieces = "", []
    for literal, letter in re.findall(r"([^%]*)(?:%(.)|\Z)", spec or _PLAIN, re.DOTALL):
        pieces.append(re.escape(literal))
        if letter == "%":
            pieces.append("%")
        elif letter:
            if letter not in _DIRECTIVES:
                raise ValueError(f"%{letter} does not sort by time: use {_shown(_IN_ORDER)}, in this order")
            letters += letter
            pieces.append(f"([0-9]{{{_DIRECTIVES[letter]}}})")
    if not _IN_ORDER.startswith(letters):
        raise ValueError(f"its texts do not sort by time: write {_shown(_IN_ORDER)} in this order, each once")
    if "S" not in letters:
        raise ValueError(f"its texts do not distinguish seconds: write {_shown('YmdHMS')}")
    pattern = re.compile("".join(pieces), re.DOTALL)
    unit = _MICROSECOND if "f" in letters else _SECOND

    def units_of(sort: str) -> int:
        found = pattern.match(sort)
        if found is None:
            raise ValueError(f"{sort!r} is not a moment as {spec or _PLAIN}")
        parts = [int(part) for part in found.groups()]
        return (datetime(*parts, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=unit)  # type: ignore[arg-type,misc]

    def text_of(units: int) -> str:
        most = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=unit)
        least = (datetime(1000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=unit)
        return (_EPOCH + timedelta(microseconds=unit * min(max(units, least), most))).strftime(spec or _PLAIN)

    return TimeFormat(f"moment as {spec}" if spec else "moment", pattern, unit, units_of, text_of)


def _shown(letters: str) -> str:
    return " ".join(f"%{letter}" for letter in letters)
