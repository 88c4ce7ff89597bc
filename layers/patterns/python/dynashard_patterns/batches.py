"""Batches that are bounded in number and in size, for steps of transactions and for messages."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def bounded(members: Iterable[T], size_of: Callable[[T], int], *, most: int, most_size: int) -> Iterator[list[T]]:
    """Yield the members, at most `most` at a time, with sizes of at most `most_size` in all unless one is larger."""
    part: list[T] = []
    total = 0
    for member in members:
        size = size_of(member)
        if part and (len(part) == most or total + size > most_size):
            yield part
            part, total = [], 0
        part.append(member)
        total += size
    if part:
        yield part
