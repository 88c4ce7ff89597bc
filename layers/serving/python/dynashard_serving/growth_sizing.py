"""How many shards the observed demand needs.

A shard that is hot by itself admits what one physical partition can: 1,000 write units or 3,000 read units a second.
So the share of requests that were admitted says how large the whole demand is, in each process alike, however small its
part of the traffic is: if a shard admits one request in 16, its demand is 16 times what one shard can take.

Sources: AWS, 'Key range throughput exceeded (hot partitions)' and 'Understanding DynamoDB warm throughput'.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dynashard.entity import IndexDefinition
from dynashard.resharding.scope import Scope
from dynashard_serving.growth_demand import Demand, Place
from dynashard_serving.table_load import ON_DEMAND_LIMIT

WRITE_UNITS: Final = 1_000.0
READ_UNITS: Final = 3_000.0
"""What one physical partition, and so one shard, can take in a second."""

_FULL: Final = 0.75
"""The share of a shard's units that a target plans with: demand fluctuates, and shards can meet on one physical
partition."""
_TOLERATED: Final = 0.01
"""The share by which demand may exceed what a single shard takes before it counts as too small."""
_SHARED: Final = 0.05
"""The same for several shards: some of them may share a physical partition until that is split."""
_CONCLUSIVE: Final = 32
"""Requests that show a demand well enough not to wait for more."""
_LEAST_HEAT: Final = 0.5
"""The share of a shard's units that a scope must be able to consume, else it is not what makes a key range hot."""
_BOLDNESS: Final = 4.0
"""The excess that each executed request can prove. Without any, a count only doubles."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a process saw of one scope in the last windows.

    Attributes:
        shards: executed requests for each shard.
        throttled: requests that were throttled for good.
        all_requests: requests of all partitions at the same place, executed or throttled.
        most_throttled: the throttled requests of the scope that has most of them.
    """

    shards: tuple[int, ...]
    throttled: int
    all_requests: int
    most_throttled: int

    @property
    def requests(self) -> int:
        """All requests of the scope."""
        return sum(self.shards) + self.throttled

    @property
    def conclusive(self) -> bool:
        """Whether there were enough requests to decide."""
        return self.requests >= _CONCLUSIVE

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
        return min(self.requests / (capacity + 1 + math.sqrt(executed + 1)), _BOLDNESS * executed)


def evidence_of(demand: Demand, scope: Scope, place: Place, count: int | None = None) -> Evidence:
    """Return what a process saw of a scope with this many shards; of those that it saw, if the count is unknown.

    Cost: no request; some milliseconds if the process has seen thousands of stored partition keys.
    """
    tallies = demand.tallies(place)
    admitted: dict[str, int] = {}
    for tally in tallies:
        for key, requests in tally.admitted.items():
            admitted[key] = admitted.get(key, 0) + requests
    if scope.index is not None:
        shards = _hottest(admitted, scope.index)
        shards += [0] * ((count or 1) - len(shards))
    elif count is None:
        separator = scope.entity.separator
        shards = [more for key, more in admitted.items() if key.rpartition(separator)[0] == scope.partition] or [0]
    else:
        shards = [admitted.get(key, 0) for key in scope.shard_keys(count)]
    return Evidence(
        tuple(shards),
        throttled=sum(tally.throttled.get(scope.key, 0) for tally in tallies),
        all_requests=sum(tally.all_admitted + tally.all_throttled for tally in tallies),
        most_throttled=sum(max(tally.throttled.values(), default=0) for tally in tallies),
    )


def _hottest(admitted: Mapping[str, int], index: IndexDefinition) -> list[int]:
    """Return the requests for each shard of the index partition that executed most: all partitions share one count."""
    prefix = f"{index.prefix}{index.separator}" if index.prefix else ""
    partitions: dict[str, list[int]] = {}
    for key, requests in admitted.items():
        if key.startswith(prefix):
            partitions.setdefault(key.rpartition(index.separator)[0], []).append(requests)
    return max(partitions.values(), key=sum, default=[0])


@dataclass(frozen=True, slots=True)
class Supply:
    """What the table, or an index, can give in a second: `units`, None if that is unknown."""

    units: float | None
    place: Place

    @property
    def shard_units(self) -> float:
        """What one shard can take."""
        return WRITE_UNITS if self.place.writing else READ_UNITS

    @property
    def most_shards(self) -> int:
        """The shards that can use all of it."""
        return _power_of_two((self.units or ON_DEMAND_LIMIT) / self.shard_units)

    @property
    def remedy(self) -> str:
        """What to do if the scope needs more than this."""
        where = f"index {self.place.slot}" if self.place.slot else "the table"
        does = "write" if self.place.writing else "read"
        if self.units is None:
            return f"{where} is assumed to give {ON_DEMAND_LIMIT:,} {does} units a second"
        return f"{where} gives {self.units:,.0f} {does} units a second now; pre-warm it, or raise its maximum"

    def bystander(self, evidence: Evidence) -> bool:
        """Whether a scope has so small a part of all requests that it cannot be what makes a key range hot.

        It may share a physical partition with a hot key; or the table is not warm, which throttles all of it alike.
        """
        # Of few requests, some may be of the same scope by chance.
        certain = max(evidence.requests - math.sqrt(evidence.requests), 0.5)
        return not self._hot(certain, evidence)

    def spread(self, evidence: Evidence) -> bool:
        """Whether throttles are so spread that no key can be hot: the table, or index, gives too little for all."""
        return not self._hot(evidence.most_throttled, evidence)

    def _hot(self, requests: float, evidence: Evidence) -> bool:
        part = requests / max(1, evidence.all_requests)
        return part * (self.units or ON_DEMAND_LIMIT) >= _LEAST_HEAT * self.shard_units


def enough(evidence: Evidence) -> bool:
    """Whether the shards take as much as is asked of them: then a physical partition that some of them share is hot."""
    return evidence.excess < 1 + (_SHARED if len(evidence.shards) > 1 else _TOLERATED)


def target_count(evidence: Evidence, *, ceiling: int) -> int:
    """Return the count for a demand that a count is too small for: at least its double, but at most the ceiling."""
    count = len(evidence.shards)
    return min(max(2 * count, _power_of_two(count * evidence.proven_excess / _FULL)), ceiling)


def _power_of_two(number: float) -> int:
    return 1 << max(0, math.ceil(math.log2(number))) if number > 1 else 1
