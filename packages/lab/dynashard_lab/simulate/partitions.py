"""The partitions of a table or index: each owns a range of hashes, then of sort keys within an item collection."""

from bisect import bisect_right
from collections.abc import Iterator
from hashlib import md5
from random import Random
from typing import Final

from dynashard_lab.simulate.bucket import Bucket
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.splitting import SPACE, Position, Sample, split_point

_SAMPLES: Final = 256
"""Positions that a partition remembers, to find where to split."""
_MOST_KNOWN: Final = 1_000_000
"""Partition keys whose partitions are remembered."""


def hash_of(hash_key: str) -> int:
    """Return the place of a partition key in the key space. DynamoDB's own hash is not public; any even one will do."""
    return int.from_bytes(md5(hash_key.encode(), usedforsecurity=False).digest()[:8], "big")


class Partition:
    """One partition: its limits, its size, and its recent heat."""

    __slots__ = (
        "bytes", "hot_since", "reads", "sample_bytes", "start", "stored", "throttled_at", "throttled_samples",
        "throttles", "writes",
    )  # fmt: skip

    def __init__(self, start: Position, settings: Settings, now: float) -> None:
        self.start = start
        self.writes = Bucket(settings.partition_write_units, settings.limit_burst_seconds, now=now)
        self.reads = Bucket(settings.partition_read_units, settings.limit_burst_seconds, now=now)
        self.bytes = 0.0
        self.sample_bytes = settings.partition_bytes / _SAMPLES
        """The size at which the next stored position is remembered."""
        self.stored: list[Sample] = []
        self.hot_since = self.throttled_at = float("-inf")
        self.throttles = 0
        self.throttled_samples: list[Sample] = []

    def forget_heat(self) -> None:
        """Start to count its heat anew."""
        self.hot_since = self.throttled_at = float("-inf")
        self.throttles = 0
        self.throttled_samples = []


class Partitions:
    """All partitions of a table or index, in order of their ranges. They split and never merge.

    `items_may_part` is False for a table with a local index: its item collections stay whole.
    """

    def __init__(self, count: int, settings: Settings, *, items_may_part: bool = True) -> None:
        self._settings = settings
        self._items_may_part = items_may_part
        self._random = Random(settings.seed)
        self._starts: list[Position] = [(at * SPACE // count, "") for at in range(count)]
        self._partitions = [Partition(start, settings, 0.0) for start in self._starts]
        self._whole: dict[str, Partition] = {}
        self._hashes: dict[str, int] = {}
        self.heat_splits = 0
        self.size_splits = 0

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions)

    def find(self, hash_key: str, sort_key: str) -> Partition:
        """Return the partition that holds an item."""
        return self._whole.get(hash_key) or self._search(hash_key, sort_key)

    def _search(self, hash_key: str, sort_key: str) -> Partition:
        hashed = self._hash(hash_key)
        at = bisect_right(self._starts, (hashed, "")) - 1
        if at + 1 == len(self._starts) or self._starts[at + 1][0] > hashed:
            found = self._whole[hash_key] = self._partitions[at]
            return found
        return self._partitions[bisect_right(self._starts, (hashed, sort_key)) - 1]

    def _hash(self, hash_key: str) -> int:
        hashed = self._hashes.get(hash_key)
        if hashed is None:
            if len(self._hashes) >= _MOST_KNOWN:
                self._hashes.clear()
                self._whole.clear()
            hashed = self._hashes[hash_key] = hash_of(hash_key)
        return hashed

    def grow(self, count: int, now: float) -> None:
        """Split the widest ranges of hashes in half until there are `count` partitions."""
        while len(self) < count:
            ends = [*(start[0] for start in self._starts[1:]), SPACE]
            widest = max(range(len(self)), key=lambda at: ends[at] - self._starts[at][0])
            start = self._starts[widest][0]
            self._split(self._partitions[widest], ((start + ends[widest]) // 2, ""), now)

    def throttled(self, partition: Partition, now: float, hash_key: str, sort_key: str, count: int) -> None:
        """Note that a partition has refused `count` requests; split it if it has been hot for long enough."""
        if now - partition.throttled_at > self._settings.heat_pause_seconds:
            partition.forget_heat()
            partition.hot_since = now
        partition.throttled_at = now
        partition.throttles += 1
        # Each refusal of the hot period has the same chance to be in the sample.
        samples, place = partition.throttled_samples, int(self._random.random() * partition.throttles)
        if len(samples) < _SAMPLES:
            samples.append(Sample(now, self._hash(hash_key), sort_key, count))
        elif place < _SAMPLES:
            samples[place] = Sample(now, self._hash(hash_key), sort_key, count)
        if now - partition.hot_since >= self._settings.heat_split_seconds:
            self._split_for_heat(partition, now)

    def _split_for_heat(self, partition: Partition, now: float) -> None:
        point = split_point(
            sorted(partition.throttled_samples),
            least_share=self._settings.heat_least_share,
            rising_share=self._settings.rising_share,
            within_collections=self._items_may_part,
        )
        partition.forget_heat()
        if point is not None:
            self.heat_splits += 1
            self._split(partition, point, now)

    def written(self, partition: Partition, now: float, hash_key: str, sort_key: str, size: float) -> None:
        """Note that a partition has grown to a size at which a position is remembered; split it if it is full."""
        settings = self._settings
        partition.sample_bytes = partition.bytes + settings.partition_bytes / _SAMPLES
        partition.stored.append(Sample(now, self._hash(hash_key), sort_key, size))
        if partition.bytes < settings.partition_bytes:
            return
        point = split_point(
            partition.stored, least_share=0.0, rising_share=2.0, within_collections=self._items_may_part
        )
        if point is not None and point > partition.start:
            self.size_splits += 1
            self._split(partition, point, now)

    def _split(self, partition: Partition, point: Position, now: float) -> None:
        """Part a partition. The halves share its bytes; each has a partition's full limits, and no more saved units."""
        upper = Partition(point, self._settings, now)
        above = [sample for sample in partition.stored if sample[1:3] >= point]
        share = len(above) / len(partition.stored) if partition.stored else 0.5
        upper.bytes, partition.bytes = partition.bytes * share, partition.bytes * (1 - share)
        upper.stored, partition.stored = above, [sample for sample in partition.stored if sample[1:3] < point]
        for half in (partition, upper):
            half.sample_bytes = half.bytes + self._settings.partition_bytes / _SAMPLES
        upper.writes.level, upper.reads.level = min(partition.writes.level, 0.0), min(partition.reads.level, 0.0)
        partition.forget_heat()
        at = self._partitions.index(partition) + 1
        self._partitions.insert(at, upper)
        self._starts.insert(at, point)
        self._whole.clear()
