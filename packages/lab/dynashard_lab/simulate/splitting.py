"""Where a partition is split: pure functions over a sample of its traffic or of its stored items."""

from collections.abc import Sequence
from itertools import accumulate
from statistics import median_low
from typing import Final, NamedTuple

Position = tuple[int, str]
"""A place in a table's key space: the hash of the partition key, then the sort key."""

SPACE: Final = 1 << 64
"""The number of hashes."""

_LEAST_SAMPLE: Final = 8
"""Fewer sort keys show no order."""


class Sample(NamedTuple):
    """A request of `weight` equal ones to a position, at a time."""

    at: float
    hashed: int
    sort: str
    weight: float


def split_point(
    samples: Sequence[Sample], *, least_share: float, rising_share: float, within_collections: bool
) -> Position | None:
    """Return the first position of the upper half of a split that parts the traffic as evenly as possible.

    Args:
        samples: the traffic, in order of time.
        least_share: the least share that each half must get.
        rising_share: see `Settings`; above 1 the order of sort keys is not considered.
        within_collections: whether items with the same partition key may be parted.

    Returns:
        None if no split would help.
    """
    total = sum(sample.weight for sample in samples)
    candidates = _between_collections(samples)
    if within_collections:
        candidates += _within_hottest(samples, rising_share)
    evenness, point = max(((min(below, total - below), at) for below, at in candidates), default=(0.0, (0, "")))
    return point if total and evenness >= least_share * total else None


def is_ordered(sorts: Sequence[str], share: float) -> bool:
    """Whether sort keys, in order of time, rise or fall: whether `share` of the newer half is beyond the older half."""
    half = len(sorts) // 2
    if half < _LEAST_SAMPLE // 2:
        return False
    middle, newer = median_low(sorts[:half]), sorts[half:]
    above, below = sum(sort > middle for sort in newer), sum(sort < middle for sort in newer)
    return max(above, below) >= share * len(newer)


def _between_collections(samples: Sequence[Sample]) -> list[tuple[float, Position]]:
    """Return each boundary between two partition keys, with the weight below it."""
    weights: dict[int, float] = {}
    for sample in samples:
        weights[sample.hashed] = weights.get(sample.hashed, 0.0) + sample.weight
    hashes = sorted(weights)
    below = accumulate(weights[hashed] for hashed in hashes)
    return [(weight, (hashed, "")) for weight, hashed in zip(below, hashes[1:], strict=False)]


def _within_hottest(samples: Sequence[Sample], rising_share: float) -> list[tuple[float, Position]]:
    """Return each boundary between two sort keys of the partition key with the most traffic, unless they rise."""
    weights: dict[int, float] = {}
    for sample in samples:
        weights[sample.hashed] = weights.get(sample.hashed, 0.0) + sample.weight
    if not weights:
        return []
    hottest = max(weights, key=lambda hashed: weights[hashed])
    mine = [sample for sample in samples if sample.hashed == hottest]
    if is_ordered([sample.sort for sample in mine], rising_share):
        return []
    before = sum(weight for hashed, weight in weights.items() if hashed < hottest)
    mine.sort(key=lambda sample: sample.sort)
    sums = list(accumulate((sample.weight for sample in mine), initial=before))
    return [(sums[at], (hottest, mine[at].sort)) for at in range(1, len(mine)) if mine[at].sort != mine[at - 1].sort]
