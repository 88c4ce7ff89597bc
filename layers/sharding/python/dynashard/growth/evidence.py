"""What a process saw of one scope: executed, throttled and created requests, and how far they exceed its shards.

A shard that is hot by itself admits what one physical partition can: 1,000 write units or 3,000 read units a second.
So the share of requests that were admitted says how large the whole demand is, in each process alike, however small its
part of the traffic is: if a shard admits one request in 16, its demand is 16 times what one shard can take.

Source: AWS, 'Key range throughput exceeded (hot partitions)'.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from dynashard.growth.demand import Demand, Place, Tally
from dynashard.resharding.scope import Scope

_CONCLUSIVE: Final = 16
"""Executed requests that show a demand well enough not to wait for more."""
_BOLDNESS: Final = 2.0
"""The excess that each executed request can prove. Without any, a count only doubles."""
_MOST_BOLDNESS: Final = 8.0
"""The excess that each executed request can make possible."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a process saw of one scope in the last windows.

    Attributes:
        shards: executed requests for each shard.
        refusing: how many of the shards throttled requests.
        throttled: requests that were throttled for good.
        all_requests: requests of all partitions at the same place, executed or throttled.
        most_throttled: the throttled requests of the scope that has most of them, also those that were executed later.
        retried: executed requests that were throttled before.
        created: executed requests that may have created an item.
    """

    shards: tuple[int, ...]
    refusing: int
    throttled: int
    all_requests: int
    most_throttled: int
    retried: int = 0
    created: int = 0

    @property
    def creating(self) -> float:
        """The share of executed requests that may have created an item; all of them if none was executed."""
        executed = sum(self.shards)
        return min(1.0, self.created / executed) if executed else 1.0

    @property
    def requests(self) -> int:
        """All requests of the scope."""
        return sum(self.shards) + self.throttled

    @property
    def conclusive(self) -> bool:
        """Whether enough requests were executed to decide."""
        return sum(self.shards) >= _CONCLUSIVE

    @property
    def full_shard(self) -> float:
        """How many requests a shard executed that no other hot key shared a physical partition with.

        That is the mean of the upper half, because shards of one partition have equal demands. Few requests give too
        large a mean, and so too small a target.
        """
        counts = sorted(self.shards, reverse=True)
        upper = counts[: max(1, len(counts) // 2)]
        return sum(upper) / len(upper)

    @property
    def excess(self) -> float:
        """The demand relative to what the shards can take, by the plain figures; infinite if nothing was executed."""
        capacity = self.full_shard * len(self.shards)
        return self.requests / capacity if capacity else math.inf

    @property
    def proven_excess(self) -> float:
        """The same by a cautious estimate: few requests prove little."""
        executed = sum(self.shards)
        capacity = self.full_shard * len(self.shards)
        return min(self.requests / (capacity + 1 + math.sqrt(executed + 1) / 2), _BOLDNESS * executed)

    @property
    def possible_excess(self) -> float:
        """The same by a bold estimate: of few requests, chance may have executed too many."""
        executed = sum(self.shards)
        capacity = self.full_shard * len(self.shards)
        chance = math.sqrt(executed + 1) - 1
        return min(self.requests / max(capacity - chance, 1.0), _MOST_BOLDNESS * executed)


def evidence_of(demand: Demand, scope: Scope, place: Place, count: int | None = None) -> Evidence:
    """Return what a process saw of a scope with this many shards; of those that it saw, if the count is unknown.

    Cost: no request; a millisecond if the process has seen thousands of stored partition keys.
    """
    tallies = demand.tallies(place)
    keys = _shard_keys(scope, count, tallies)
    return Evidence(
        tuple(_admitted(key, tallies) for key in keys) or (0,),
        refusing=sum(any(key in tally.refused for tally in tallies) for key in keys),
        throttled=sum(tally.throttled.get(scope.key, 0) for tally in tallies),
        all_requests=sum(tally.all_admitted + tally.all_throttled for tally in tallies),
        most_throttled=sum(_most(tally) for tally in tallies),
        retried=sum(tally.retried.get(scope.key, 0) for tally in tallies),
        created=sum(tally.created.get(key, 0) for tally in tallies for key in keys),
    )


def _most(tally: Tally) -> int:
    met = (tally.throttled.get(key, 0) + tally.retried.get(key, 0) for key in {*tally.throttled, *tally.retried})
    return max(met, default=0)


def _admitted(key: str, tallies: Iterable[Tally]) -> int:
    return sum(tally.admitted.get(key, 0) for tally in tallies)


def _shard_keys(scope: Scope, count: int | None, tallies: Collection[Tally]) -> list[str]:
    """Return the stored partition keys of a partition under a count; those that a process has seen if it is unknown.

    Of an index, those of the partition that executed most, because one count holds for all of its partitions.
    """
    if scope.index is None and count is not None:
        return scope.shard_keys(count)
    keyed = scope.index or scope.entity
    prefix = f"{keyed.prefix}{keyed.separator}" if keyed.prefix else ""
    partitions: dict[str, list[str]] = {}
    for key in {key for tally in tallies for key in (*tally.admitted, *tally.refused) if key.startswith(prefix)}:
        partition = key.rpartition(keyed.separator)[0]
        if scope.partition in (None, partition):
            partitions.setdefault(partition, []).append(key)
    if not partitions:
        return [""] * (count or 0)
    hottest = max(partitions, key=lambda name: sum(_admitted(key, tallies) for key in partitions[name]))
    if count is None:
        return sorted(partitions[hottest])
    return [f"{hottest}{keyed.separator}{number}" for number in range(count)]


def creating_share(evidence: Evidence | None, place: Place) -> float:
    """Return the share of a shard's write units with which callers create items. Shards hot by reads have units left.

    Without evidence, it is a load, which creates all items that it writes.
    """
    if not place.writing:
        return 0.0
    return 1.0 if evidence is None else evidence.creating
