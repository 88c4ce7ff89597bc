"""The formats of cursors: which one this release issues, and how it reads each of those that it accepts.

The first character of a token is its format. The state of a listing in format 4 is

    [recent, fences, *positions]

`recent` is `Dedup.recent`, `fences` is `Fences.pack()` or None, and `positions` has one `encode_positions` for each
logical partition. Fences only save reads: those of 0.1.0 have another shape, and each release drops the other's.
docs/versions.md has the rule for a new format, and for the release that may remove an old one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard.errors import UnsupportedCursorError

ISSUED: Final = b"4"
"""The format of the cursors of this release."""

Reader = Callable[[Any], Any]
"""Returns a state as format 4 has it."""


def _unchanged(state: Any) -> Any:
    return state


def _without_fences(state: Any) -> Any:
    """Read format 3, of the days before 0.1.0: `[recent, *positions]`."""
    recent, *positions = state
    return [recent, None, *positions]


READERS: Final[Mapping[bytes, Reader]] = {b"3": _without_fences, b"4": _unchanged}


def reader_of(version: bytes) -> Reader:
    """Return what reads a format; raises `UnsupportedCursorError` if this release does not read it."""
    reader = READERS.get(version)
    if reader is None:
        known = b", ".join(sorted(READERS)).decode()
        raise UnsupportedCursorError(
            f"the cursor is of format {version.decode()}, and this release reads the formats {known}: continue an "
            "ordered listing from the last sort key that you have, and list in another order from the start",
            field="cursor",
        )
    return reader
