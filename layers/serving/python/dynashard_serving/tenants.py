"""Which strings are tenants: one pattern for tokens, direct invocation and queues.

An HTTP API's authorizer passes every claim on as text: a list as `[a b]`, true as `true`, a number as its digits. So
`true`, `false` and `null` are never tenants. A number cannot be distinguished from text.
"""

import re
from functools import cached_property
from typing import Final

from msgspec import Struct

DEFAULT_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
MAX_LENGTH: Final = 128

_NEVER: Final = frozenset({"null", "true", "false", "nil", "undefined", "none"})
"""The texts of claims that are not strings, in any case."""
_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@~-")
"""Characters that need no escape in keys, URLs and logs."""
_PIECE: Final = r"(\[[A-Za-z0-9_.@~-]+\]|[A-Za-z0-9_-])(?:\{(\d{1,3})(?:,(\d{1,3}))?\})?"
_MOST_OPEN: Final = 3
"""Pieces with `{m,n}`. Each one multiplies the ways in which a match is tried."""


class TenantRule(Struct, frozen=True, dict=True):
    """Decides which strings are tenants.

    Attributes:
        pattern: `^`, pieces, `$`. A piece is a character or a class such as `[a-z0-9-]`, with `{n}` or `{m,n}` after
            it if it repeats. Such a pattern means the same in every dialect of regular expressions, and matches in
            bounded time.

    Raises:
        ValueError: the pattern is not of this form; the message says why.
    """

    pattern: str = DEFAULT_PATTERN

    def __post_init__(self) -> None:
        if self.pattern != DEFAULT_PATTERN:
            check(self.pattern)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.ASCII)

    def allows(self, value: object) -> bool:
        """Return whether a value is a tenant: a string that matches from its first to its last character."""
        # `fullmatch`, because `$` alone also matches before a line break at the end.
        return isinstance(value, str) and bool(self._compiled.fullmatch(value)) and value.lower() not in _NEVER


def check(pattern: str) -> None:
    """Refuse a pattern that is not of the form that `TenantRule` describes, with a `ValueError`."""
    known = re.compile(_PIECE)
    if not (pattern.startswith("^") and pattern.endswith("$")):
        raise ValueError(f"{pattern!r} must start with ^ and end with $, as {DEFAULT_PATTERN} does")
    position, longest, shortest, open_pieces = 1, 0, 0, 0
    while position < len(pattern) - 1:
        piece = known.match(pattern, position, len(pattern) - 1)
        if piece is None:
            raise ValueError(
                f"{pattern!r} is not allowed from position {position} on; use letters, digits, _, -, classes such as "
                f"[a-z0-9.@~_-], and {{1,64}} after one of them, as in {DEFAULT_PATTERN}"
            )
        _check_class(pattern, piece[1])
        least = int(piece[2] or 1)
        most = int(piece[3] or least)
        if most < least:
            raise ValueError(f"{pattern!r} repeats {least} to {most} times; write the smaller number first")
        shortest, longest, open_pieces = shortest + least, longest + most, open_pieces + (most > least)
        position = piece.end()
    if not 1 <= shortest <= longest <= MAX_LENGTH:
        raise ValueError(f"{pattern!r} matches {shortest} to {longest} characters; 1 to {MAX_LENGTH} are allowed")
    if open_pieces > _MOST_OPEN:
        raise ValueError(f"{pattern!r} has {open_pieces} pieces with {{m,n}}; use at most {_MOST_OPEN}")


def _check_class(pattern: str, piece: str) -> None:
    try:
        compiled = re.compile(piece, re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r}: {piece} is not a character class: {error}") from error
    beyond = [character for character in map(chr, range(128)) if compiled.fullmatch(character)]
    if unsafe := [character for character in beyond if character not in _SAFE]:
        raise ValueError(f"{pattern!r}: {piece} matches {unsafe[0]!r}; only letters, digits and _.@~- are allowed")


DEFAULT_TENANTS: Final = TenantRule()
