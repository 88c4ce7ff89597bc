"""How many shards the observed demand needs.

A shard that is hot by itself admits what one physical partition can: 1,000 write units or 3,000 read units a second.
So the share of requests that were admitted says how large the whole demand is, in each process alike, however small its
part of the traffic is: if a shard admits one request in 16, its demand is 16 times what one shard can take.

Sources: AWS, 'Key range throughput exceeded (hot partitions)' and 'Understanding DynamoDB warm throughput'.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from dynashard.errors import ThrottledError, ThrottleKind
from dynashard.growth.demand import Demand, Place, Tally
from dynashard.growth.settings import ON_DEMAND_LIMIT
from dynashard.resharding.scope import Scope
from dynashard.resharding.share import SHARD_READ_UNITS, SHARD_WRITE_UNITS

_FULL: Final = 0.75
"""The share of a shard's units that a target plans with: demand fluctuates, and shards can meet on one physical
partition."""
_TOLERATED: Final = 0.05
"""The share by which demand may exceed what shards take: some may share a physical partition until that is split."""
_WIDESPREAD: Final = 0.75
"""The share of shards with throttles from which on a shared physical partition is not the reason."""
_NOTICEABLE: Final = 0.1
"""The share of requests that were executed after throttles, from which on they show that shards are too few."""
_CONCLUSIVE: Final = 16
"""Executed requests that show a demand well enough not to wait for more."""
_LEAST_HEAT: Final = 0.5
"""The share of a shard's units that a scope must be able to consume, else it is not what makes a key range hot."""
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
    if scope.partition is not None:
        prefix = f"{scope.partition}{keyed.separator}"
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


@dataclass(frozen=True, slots=True)
class Supply:
    """What the table, or an index, can give in a second: `units`, None if that is unknown."""

    units: float | None
    place: Place

    @property
    def shard_units(self) -> float:
        """What one shard can take."""
        return SHARD_WRITE_UNITS if self.place.writing else SHARD_READ_UNITS

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
    """Whether the shards take what is asked of them, and only some of them throttle.

    Then these share a hot physical partition. Callers that wait for their retries ask for little more than the shards
    take, even if all of them throttle. If no throttle outlasted the retries, few of them are enough too.
    """
    if not evidence.throttled and evidence.retried < _NOTICEABLE * evidence.requests:
        return True
    widespread = evidence.refusing >= _WIDESPREAD * len(evidence.shards)
    return not widespread and evidence.excess < 1 + _TOLERATED


def target_count(evidence: Evidence, *, ceiling: int, moves: bool = True) -> int:
    """Return the count for a demand that a count is too small for: at least its double, but at most the ceiling.

    If the resize `moves` items, the estimate is cautious, because it takes units from the shards that are hot. Else it
    is bold, because new shards cost next to nothing, and missing ones take another resize with its waits.
    """
    count = len(evidence.shards)
    excess = evidence.proven_excess if moves else max(evidence.proven_excess, evidence.possible_excess)
    return min(max(2 * count, _power_of_two(count * excess / _FULL)), ceiling)


def _power_of_two(number: float) -> int:
    return 1 << max(0, math.ceil(math.log2(number))) if number > 1 else 1


def hot_places(error: ThrottledError) -> list[Place]:
    """Return where more shards help: the table, or else the indexes that a throttle names (`""` if it names none).

    A table's count is left alone while only an index is the bottleneck. More shards cannot give more than the table or
    index has: if the throttle names a limit of its own too, that comes first.
    """
    limited = {reason.index for reason in error.reasons if reason.kind is ThrottleKind.TABLE}
    hot = [reason for reason in error.reasons if reason.kind is ThrottleKind.KEY_RANGE]
    found = {Place(reason.index or "" if reason.on_index else None, not reason.reading) for reason in hot}
    table = [place for place in found if place.slot is None]
    return sorted(place for place in (table or found) if place.slot not in limited)


def creating_share(evidence: Evidence | None, place: Place) -> float:
    """Return the share of a shard's write units with which callers create items. Shards hot by reads have units left.

    Without evidence, it is a load, which creates all items that it writes.
    """
    if not place.writing:
        return 0.0
    return 1.0 if evidence is None else evidence.creating
