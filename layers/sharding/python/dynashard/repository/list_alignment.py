"""Which members of a list continue those of the list that it replaces."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any


def aligned(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """Return for each member of a new list the place of the member that it continues in the old one, or None.

    Members that are equal at both ends continue each other. If as many are between them in both lists, and none of the
    new ones is in the old list, they continue each other by their places. Otherwise some may have moved, so nothing is
    known about those in between. The work grows with the lists, not with their product: an item has room for thousands.
    """
    shared = min(len(old), len(new))
    start = next((at for at in range(shared) if old[at] != new[at]), shared)
    end = next((at for at in range(shared - start) if old[-1 - at] != new[-1 - at]), shared - start)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    in_place = len(before) == len(after) and set(map(_hashable, old)).isdisjoint(map(_hashable, after))
    between = range(start, start + len(after)) if in_place else [None] * len(after)
    return [*range(start), *between, *range(len(old) - end, len(old))]


def _hashable(value: Any) -> Hashable:
    """Return what is equal for equal values in their stored form, and can be a member of a set."""
    if isinstance(value, Mapping):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
