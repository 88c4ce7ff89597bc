"""The shards of a logical partition with epochs: each has items of the epochs that reach it, and of no others.

All epochs use the same stored partition keys, so a shard is one source for all of them, with a range of sort keys.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

from dynashard.placement import UNSHARDED, Placement
from dynashard.reads.bounds import Bounds
from dynashard.reads.positions import Positions
from dynashard.reads.scale import BEYOND_ALL
from dynashard.reads.sources import Source
from dynashard.routing import shard_key
from dynashard.topology import Epochs


class EpochSources(Sequence[Source]):
    """The shards that the epochs of a logical partition have together, each with the range of its items' sort keys.

    The bare partition key is the first, if the first epoch has no shards. `bounds` are the listing's.
    """

    def __init__(self, rule: Placement, partition: str, separator: str, epochs: Epochs, bounds: Bounds) -> None:
        self.epochs = epochs
        self._key = partial(shard_key, rule, partition, separator)
        self._bounds = bounds

    def __len__(self) -> int:
        return len(self.epochs.spans)

    def __getitem__(self, index: Any) -> Any:
        """Return one shard; there are no slices."""
        first, end = self.epochs.spans[index]
        shard = index - self.epochs.bare
        key = self._key(UNSHARDED, 0) if shard < 0 else self._key(self.epochs.most, shard)
        return Source(index, key, self._bounds.within(Bounds(first or None, end, high_open=True)))

    def number_of(self, sort: str, hashed: int) -> int | None:
        """Return the number of the shard in which an item with this sort key and hash belongs; None if not settled."""
        if self.epochs.unsettled(sort) is not None:
            return None
        count = self.epochs.count_of(sort)
        return 0 if count == UNSHARDED else self.epochs.bare + (hashed & (count - 1))

    def begun(self, state: Positions, *, forward: bool) -> "Begun":
        """Return which shards may have the next item after the positions of a listing, and what the others lack."""
        rest = {number: self._rest(number, state, forward=forward) for number in range(len(self))}
        starts = {number: _start(each, forward=forward) for number, each in rest.items() if not each.empty}
        nearest = (min if forward else max)(starts.values(), default="")
        later = {number: (start, -inf if forward else inf) for number, start in starts.items() if start != nearest}
        return Begun({number for number, start in starts.items() if start == nearest}, later)

    def _rest(self, number: int, state: Positions, *, forward: bool) -> Bounds:
        """The bounds of what a shard has after its position."""
        within: Bounds = self[number].range
        start = state.start(number, len(self), forward=forward)
        return within if start is None else within.within(Bounds().after(start.sort, forward=forward))


class Begun(NamedTuple):
    """The shards that an ordered page reads first.

    Attributes:
        now: may have the next item.
        later: have nothing up to a place, as the merge compares places. Those in neither have nothing more.
    """

    now: set[int]
    later: Mapping[int, tuple[str, float]]


def _start(bounds: Bounds, *, forward: bool) -> str:
    """Where bounds begin in reading order."""
    if forward:
        return bounds.low or ""
    return BEYOND_ALL if bounds.high is None else bounds.high
