"""Counts the keys of a file: how often each logical partition occurs."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

MAX_KEYS: Final = 5_000_000
"""Different keys that are counted; more would not fit into memory."""
MAX_KEY_BYTES: Final = 2048
_DIGITS: Final = 15


def key_counts(lines: Iterable[bytes]) -> Counter[str]:
    """Return how often each key occurs.

    A line is a key, which counts once, or a key, a tab and a whole number. Empty lines are ignored.

    Raises:
        ValueError: a line is not UTF-8, too long, or has a wrong number; or there are no keys, or too many.
    """
    counts: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        key, times = _parsed(number, line)
        if not key:
            continue
        counts[key] += times
        if len(counts) > MAX_KEYS:
            raise ValueError(f"line {number}: more than {MAX_KEYS:,} different keys; give a sample of the keys")
    if not counts.total():
        raise ValueError("the file has no keys")
    return counts


def _parsed(number: int, line: bytes) -> tuple[str, int]:
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"line {number}: not UTF-8; convert the file first") from None
    key, tab, times = text.partition("\t")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise ValueError(f"line {number}: longer than {MAX_KEY_BYTES:,} bytes, which no partition key is")
    if not tab:
        return key, 1
    if not (times.isascii() and times.isdigit()) or len(times) > _DIGITS or not int(times):
        raise ValueError(f"line {number}: {times[:_DIGITS]!r} is not a whole number from 1 to {10**_DIGITS:,}")
    return key, int(times)
