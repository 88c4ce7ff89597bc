"""A long time with many tenants: their rates, the model of partitions, and the decisions of the growth policy.

A month has too many operations for the layer, so requests are decided about by the tick, and processes are left out.
Placement, the policy's decisions and the estimate of a resize are the layer's own: whether a throttle calls for shards,
how many, what moving items takes, and whether that is too long to start by itself. A resize takes effect when it is
expected to be complete, but not before the next tick. The units that it takes from hot shards are left out.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, pi, sin
from random import Random
from typing import Final

from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.growth.demand import Place
from dynashard.growth.evidence import Evidence
from dynashard.growth.sizing import enough, target_count
from dynashard.growth.supply import Supply
from dynashard.placement import PLACEMENTS
from dynashard.resharding.estimate import EffortInputs, Estimate, Stored, estimate
from dynashard.resharding.rates import Course
from dynashard.resharding.share import Share
from dynashard.resharding.timing import Timing
from dynashard.routing import shard_keys
from dynashard_lab.simulate.capacity import DAY
from dynashard_lab.simulate.model import TABLE, Access
from dynashard_lab.simulate.run import GrowingResult, Point, Result, build, dollars_of, settled_rate
from dynashard_lab.simulate.scenario import DemandSpec, GrowingSpec, Scenario
from dynashard_lab.simulate.traffic import units_of

_TAIL: Final = 256
"""Stored partition keys that stand for the tenants with little traffic."""
_POINTS: Final = 240
_MONTH_SECONDS: Final = 730 * 3_600
_WRITES: Final = Place(None, writing=True)
_WORKERS: Final = 4
"""Tasks of a resize that are worked on at a time."""


@dataclass(slots=True)
class _Tenant:
    """A tenant with its share of all requests, its shards, its items, and its requests in a tick.

    `growing` is when a resize takes effect, and its target; None without one.
    """

    partition: str
    share: float
    keys: list[str]
    owed: float = 0.0
    admitted: list[int] = field(default_factory=list)
    throttled: int = 0
    refusing: int = 0
    stored: int = 0
    growing: tuple[float, int] | None = None

    @property
    def requests(self) -> int:
        """Its requests in the tick."""
        return sum(self.admitted) + self.throttled


def run_growing(scenario: Scenario, growing: GrowingSpec) -> Result:
    """Run a scenario of many tenants. Cost: some 5 microseconds for each shard of the hottest tenants and tick."""
    return _Run(scenario, growing).result()


class _Run:
    def __init__(self, scenario: Scenario, growing: GrowingSpec) -> None:
        self._scenario = scenario
        self._growing = growing
        self._demand: DemandSpec = next(iter(scenario.demands.values()))
        self._model = build(scenario)
        self._random = Random(scenario.settings.seed)
        self._units = units_of(self._demand, scenario.settings)
        self._placement = PLACEMENTS[growing.placement]
        self._hottest, self._tail = self._tenants()
        self._reasons: Counter[str] = Counter()
        self._totals = [0, 0]
        """Requests, and those that were admitted."""
        self._moves = self._placement.fixed and not self._placement.by_time
        self._timing = Timing()
        self._share = Share(growing.mover_share, scenario.settings.partition_write_units)
        self._resizes: list[Estimate] = []
        self._declined: set[str] = set()

    def _tenants(self) -> tuple[list[_Tenant], list[_Tenant]]:
        demand = self._demand
        weights = [1.0 / rank**demand.skew for rank in range(1, demand.partitions + 1)]
        total, many = sum(weights), min(self._growing.hottest, demand.partitions)
        hottest = [_Tenant(f"{demand.partition}{n}", weights[n] / total, []) for n in range(many)]
        for tenant in hottest:
            tenant.keys = self._keys(tenant, max(1, demand.shards))
        share = sum(weights[many:]) / total / _TAIL
        rest = [f"{demand.partition}rest{number}" for number in range(_TAIL)]
        return hottest, [_Tenant(each, share, [each]) for each in rest] if share else []

    def _keys(self, tenant: _Tenant, count: int) -> list[str]:
        return list(shard_keys(self._placement, tenant.partition, DEFAULT_SEPARATOR, count))

    def result(self) -> Result:
        scenario, points = self._scenario, list[Point]()
        ticks = ceil(scenario.seconds / scenario.tick)
        every, before = max(1, ticks // _POINTS), (0, 0)
        now = since = 0.0
        for tick in range(1, ticks + 1):
            now = tick * scenario.tick
            self._tick(now)
            if tick % every == 0 or tick == ticks:
                points.append(self._point(now, now - since, before))
                before, since = (self._totals[0], self._totals[1]), now
        return self._summary(now, points)

    def _tick(self, now: float) -> None:
        """Let all tenants send a tick's requests, in random order, and then let counts grow."""
        wave = 1.0 + self._growing.daily * sin(2 * pi * now / DAY)
        requests = self._demand.rate_at(now) * wave * self._scenario.tick
        everyone = [*self._hottest, *self._tail]
        for tenant in self._hottest:
            if tenant.growing is not None and tenant.growing[0] < now:
                tenant.keys, tenant.growing = self._keys(tenant, tenant.growing[1]), None
        self._random.shuffle(everyone)
        for tenant in everyone:
            self._send(tenant, now, requests * tenant.share)
        asked = sum(tenant.requests for tenant in everyone)
        self._totals[0] += asked
        self._totals[1] += sum(sum(tenant.admitted) for tenant in everyone)
        if self._growing.grows:
            most = max(tenant.throttled for tenant in everyone)
            for tenant in self._hottest:
                if tenant.throttled and tenant.growing is None:
                    self._grow(tenant, now, asked, most)

    def _send(self, tenant: _Tenant, now: float, requests: float) -> None:
        tenant.admitted, tenant.throttled, tenant.refusing = [], 0, 0
        tenant.owed += requests
        due, shards = int(tenant.owed), len(tenant.keys)
        tenant.owed -= due
        sort, size = f"{now:020.6f}", float(self._demand.item_bytes)
        for number, key in enumerate(tenant.keys):
            count = due * (number + 1) // shards - due * number // shards
            access = Access(key, sort, self._units, size=size)
            admitted, throttle = self._model.admit_many(now, count, [access])
            tenant.admitted.append(admitted)
            tenant.stored += admitted
            if throttle is not None:
                tenant.throttled += count - admitted
                tenant.refusing += 1
                self._reasons.update({each.reason: count - admitted for each in throttle.reasons})

    def _grow(self, tenant: _Tenant, now: float, asked: int, most: int) -> None:
        """Let the policy decide about a tenant by what all processes have seen of it."""
        evidence = Evidence(tuple(tenant.admitted), tenant.refusing, tenant.throttled, asked, most)
        supply = Supply(self._model.resources[TABLE].writes.capacity.units, _WRITES)
        ceiling = min(self._growing.most_shards, supply.most_shards)
        if len(tenant.keys) >= ceiling or supply.bystander(evidence) or enough(evidence):
            return
        expected = self._estimate(tenant, target_count(evidence, ceiling=ceiling, moves=self._moves))
        if self._moves and expected.seconds > 60 * self._growing.growth_minutes:
            self._declined.add(tenant.partition)
            return
        tenant.growing = now + expected.seconds - self._scenario.tick, expected.target
        self._resizes.append(expected)

    def _estimate(self, tenant: _Tenant, target: int) -> Estimate:
        """Return what a resize takes whose callers create what they were admitted to create in the last tick."""
        origin, timing, lease = len(tenant.keys), self._timing, self._timing.lease
        course = Course(origin, target, _WORKERS)
        if not self._moves:
            waits = timing.ahead(lease) if self._placement.by_time else 2 * timing.wait(lease)
            return estimate(EffortInputs(course, 0, waits=waits), Stored(), self._share)
        created = sum(tenant.admitted) / self._scenario.tick * self._units
        effort = EffortInputs(
            course,
            origin,
            waits=5 * timing.wait(lease) + 2 * timing.lag,
            creating=min(1.0, created / (origin * self._share.write_units)),
            creating_seconds=2 * timing.wait(lease) + lease,
        )
        size = float(self._demand.item_bytes)
        return estimate(effort, Stored(tenant.stored, tenant.stored * size), self._share)

    def _point(self, now: float, length: float, before: tuple[int, int]) -> Point:
        table = self._model.resources[TABLE]
        asked, admitted = ((mine - theirs) / length for mine, theirs in zip(self._totals, before, strict=True))
        shards = max(len(tenant.keys) for tenant in self._hottest)
        units = table.writes.capacity.units
        return Point(round(now, 3), asked, admitted, asked - admitted, len(table.partitions), units, shards)

    def _summary(self, seconds: float, points: list[Point]) -> Result:
        table, (asked, admitted) = self._model.resources[TABLE], self._totals
        counts = Counter(len(tenant.keys) for tenant in self._hottest)
        return Result(
            seconds=round(seconds, 3),
            finished=True,
            asked=asked,
            admitted=admitted,
            throttled=asked - admitted,
            reasons=dict(self._reasons.most_common()),
            admitted_rate=admitted / seconds,
            settled_rate=settled_rate(points, seconds),
            partitions=len(table.partitions),
            heat_splits=table.partitions.heat_splits,
            size_splits=table.partitions.size_splits,
            dollars_a_month=dollars_of(table, seconds, self._model.settings) / seconds * _MONTH_SECONDS,
            points=points,
            growing=GrowingResult(
                tenants=self._demand.partitions,
                counts={count: counts[count] for count in sorted(counts) if count > 1},
                resizes=len(self._resizes),
                declined=len(self._declined),
                moved=sum(each.items for each in self._resizes),
                dollars=sum(each.dollars for each in self._resizes),
                longest_seconds=max((each.seconds for each in self._resizes), default=0.0),
            ),
        )
