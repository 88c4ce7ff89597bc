"""Epochs: stretches of key time, each with a shard count of its own, so that a count grows and nothing moves.

A record's history has an entry for each epoch: its first sort key, its count, and whether it is settled. The epoch of a
key is the last confirmed one whose first sort key is not after it. The history only grows, and no settled entry ever
changes, so the place of a key never changes either.

    pending      published, and not known to every client yet: a client that would place a key by it settles it first
    confirmed    it holds from its first sort key on, for ever
    void         it never held, and never will
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, structs

from dynashard.placement import UNSHARDED

Span = tuple[str, str | None]
"""The sort keys from the first text up to, but not including, the second; None for all that follow."""
MOST_EPOCHS: Final = 64
"""Entries of a history, void ones included. None ever leaves it."""
TOO_MANY_EPOCHS: Final = "too_many_epochs"
"""Why a resize is refused whose history is full."""


class EpochState(StrEnum):
    """Whether an entry of a history holds."""

    PENDING = "pending"
    CONFIRMED = "confirmed"
    VOID = "void"


class Epoch(Struct, frozen=True):
    """An entry of a history: from the sort key `first` on, keys are spread over `count` shards, if it is confirmed."""

    first: str
    count: int
    state: EpochState

    @property
    def settled(self) -> bool:
        """Whether it is known for ever if it holds."""
        return self.state is not EpochState.PENDING


History = tuple[Epoch, ...]
"""All entries, by their first sort keys. The first entry is what stood before the first resize, from '' on."""


def published(history: History, standing: int, first: str, count: int) -> History:
    """Return a history with one more entry, which is pending; an empty one begins with the `standing` count.

    Raises `ValueError` if its last entry is not settled, if there are too many, or if a first sort key is not before.
    """
    before = history or (Epoch("", standing, EpochState.CONFIRMED),)
    if not before[-1].settled:
        raise ValueError("the last entry is not settled")
    if len(before) >= MOST_EPOCHS:
        raise ValueError(f"there are {MOST_EPOCHS} entries already")
    if before[-1].first >= first:
        raise ValueError(f"the last entry begins at {before[-1].first}, which is not before {first}")
    return (*before, Epoch(first, count, EpochState.PENDING))


def settled(history: History, first: str, state: EpochState) -> History | None:
    """Return a history whose entry with this first sort key is confirmed or void; None unless it is pending there."""
    return (
        tuple(structs.replace(each, state=state) if each.first == first else each for each in history)
        if any(each.first == first and not each.settled for each in history)
        else None
    )


def _cannot_settle(entry: Epoch) -> None:
    """In place of what settles: only a view of a topology table can."""
    raise RuntimeError(f"this view cannot settle the epoch from {entry.first} on")


@dataclass(frozen=True)
class Epochs:
    """How a view places keys by their times.

    Attributes:
        record: the key of the record with the history.
        entries: the entries that hold or may come to hold, the first one included.
        past: sort keys before this one are of times before the view was read; '' if that is not known of any.
        settle: settles an entry under which a key is to be placed: it is void unless it was confirmed before. The view
            must be read again afterwards. Cost: 1 round trip, 1 read unit; 1 more and 1 write unit if nobody else has.
    """

    record: str
    entries: History
    past: str = field(default="", kw_only=True, compare=False)
    settle: Callable[[Epoch], None] = field(default=_cannot_settle, repr=False, compare=False)
    _firsts: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _counts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _latest: str = field(init=False, repr=False, compare=False)
    _count: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        latest = self.entries[-1]
        # Every read and write looks at these.
        prepared = {
            "_firsts": tuple(each.first for each in self.entries[1:]),
            "_counts": tuple(each.count for each in self.entries),
            "_latest": latest.first,
            "_count": latest.count if latest.settled else None,
        }
        for name, value in prepared.items():
            object.__setattr__(self, name, value)

    @cached_property
    def open(self) -> Epoch | None:
        """The entry that is not settled."""
        return None if self.entries[-1].settled else self.entries[-1]

    @cached_property
    def most(self) -> int:
        """The greatest count of all."""
        return max(each.count for each in self.entries)

    @property
    def bare(self) -> bool:
        """Whether the first epoch's items stand under the bare partition key."""
        return self.entries[0].count == UNSHARDED

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Where keys lie that may stand in each shard, shard 0 first; before them, if there is one, the bare key's."""
        last = len(self.entries) - 1
        # Until an entry is settled, both it and the one before it may hold for the latest keys.
        latest = {last} if self.open is None else {last - 1, last}

        def span(having: list[int]) -> Span:
            end = having[-1]
            return self.entries[having[0]].first, None if end in latest else self.entries[end + 1].first

        counts = [each.count for each in self.entries]
        shards = [span([n for n, count in enumerate(counts) if count > shard]) for shard in range(self.most)]
        return (span([0]), *shards) if self.bare else tuple(shards)

    def count_of(self, sort: str) -> int:
        """Return the count of a sort key's epoch; an entry that is not settled counts as confirmed."""
        return self._counts[bisect_right(self._firsts, sort)]

    def settled_count_of(self, sort: str) -> int | None:
        """Return the count of a sort key's epoch; None if an entry decides about it that must be settled first."""
        # Most keys are new.
        return self._count if sort >= self._latest else self._counts[bisect_right(self._firsts, sort)]

    def unsettled(self, sort: str) -> Epoch | None:
        """Return the entry that must be settled before a sort key is placed; None if its place is known."""
        entry = self.open
        return entry if entry is not None and sort >= entry.first else None


def epochs_of(record: str, history: History) -> Epochs | None:
    """Return how a record's history places keys; None if all of them are placed by one count."""
    entries = tuple(each for each in history if each.state is not EpochState.VOID)
    return Epochs(record, entries) if len(entries) > 1 else None


def stored(history: Sequence[Epoch]) -> list[dict[str, Any]]:
    """Return the stored form of a history, before it is encoded."""
    return [{"first": each.first, "count": each.count, "state": each.state.value} for each in history]


def read(entries: Sequence[Mapping[str, Any]]) -> History:
    """Return the history of a stored form; raises `KeyError`, `TypeError` or `ValueError` if it is none."""
    history = tuple(Epoch(each["first"], int(each["count"]), EpochState(each["state"])) for each in entries)
    firsts = [each.first for each in history]
    if history and (firsts[0] != "" or sorted(set(firsts)) != firsts or not all(e.settled for e in history[:-1])):
        raise ValueError(f"no history of epochs: {firsts}")
    return history
