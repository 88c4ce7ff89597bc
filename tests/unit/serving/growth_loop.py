"""Processes that grow counts against the model of DynamoDB's partitions, in virtual time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING

from dynashard import Shards
from dynashard.errors import ReshardRefusedError, ThrottledError
from dynashard.growth.demand import Demand
from dynashard.growth.policy import Growth
from dynashard.growth.retries import RetriedThrottles
from dynashard.growth.terms import CountState
from dynashard.resharding.scope import Scope
from dynashard.transport.classification import Refusal, classify
from dynashard_lab.simulate.capacity import OnDemand, Provisioned
from dynashard_lab.simulate.model import Access, TableModel
from dynashard_lab.simulate.resource import Capacities, Resource
from dynashard_lab.simulate.run import ARN
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.throttle import Throttle
from tests.unit.serving.growth_policy_world import START, Loads, World, entity

if TYPE_CHECKING:
    from dynashard.growth.policy import Growth

UNITS = 100.0
"""Write units of each request: large items make few requests of many units."""
RESIZE_SECONDS = 240.0
"""Four waits of a minute."""
_TICK = 0.1
_ANSWER_SECONDS = 0.1
"""How long a caller takes to send its next request after an answer."""
_TABLE = "table"
_HOT = "TableWriteKeyRangeThroughputExceeded"


@dataclass
class Slow(World):
    """A topology whose resizes take their time."""

    ends: dict[str, tuple[float, int]] = field(default_factory=dict)
    asked_at: list[float] = field(default_factory=list)

    def ask(self, scope: Scope, target: int, _creating: float) -> object:
        state = self.counts[scope.key]
        if state.busy:
            raise ReshardRefusedError("one is running already", reason="running")
        self.asked.append((scope.key, target))
        self.asked_at.append(self.now)
        self.counts[scope.key] = CountState(state.count, state.changed, busy=True)
        self.ends[scope.key] = (self.now + RESIZE_SECONDS, target)
        return None

    def finish_resizes(self) -> None:
        for key in [key for key, (at, _) in self.ends.items() if at <= self.now]:
            self.counts[key] = CountState(self.ends.pop(key)[1], self.now, busy=False)


@dataclass
class Loop:
    """Requests that arrive at a rate for each logical partition, and fail if all of their attempts are throttled.

    Besides, callers send one request after another, and wait for the answer of each.

    Attributes:
        rates: write units a second by logical partition.
        processes: how many processes the requests are divided among at random.
        units: write units of the table: warm ones on demand, or `provisioned`.
        described: whether the processes know these.
        callers: how many callers wait for their answers, by logical partition.
        pauses: seconds before each further attempt of a throttled request.
    """

    rates: dict[str, float]
    processes: int = 1
    units: float = 40_000.0
    provisioned: bool = False
    described: bool = True
    callers: dict[str, int] = field(default_factory=dict)
    pauses: tuple[float, ...] = ()
    shards: Shards = field(default_factory=lambda: Shards(1, max=1024))
    seed: int = 1
    world: Slow = field(default_factory=Slow)
    history: list[tuple[float, int, int]] = field(default_factory=list)
    """At the end of each second: the time since the start, and the requests that were admitted and that failed."""

    def __post_init__(self) -> None:
        settings = Settings()
        reads = OnDemand(40_000, 40_000, settings)
        writes = Provisioned(self.units, settings) if self.provisioned else OnDemand(self.units, 40_000, settings)
        self.model = TableModel(Resource(ARN, Capacities(writes, reads), settings), {}, settings)
        self._random = Random(self.seed)
        self._waiting: list[tuple[float, str, int, int]] = []
        """Requests that are sent later: the time, the partition, the process and the attempt, from 0."""
        self._entity = entity(self.shards)
        load = Loads(units=self.units if self.described else None)
        self._demands = [Demand(lambda: self.world.now) for _ in range(self.processes)]
        self._growths: list[Growth] = [
            self.world.process(random=self._random.random(), waits=False, load=load, demand=demand)
            for demand in self._demands
        ]
        self._retries = [
            RetriedThrottles([self._entity.model], demand, growth.throttled, _TABLE)
            for demand, growth in zip(self._demands, self._growths, strict=True)
        ]
        for partition, callers in self.callers.items():
            for _ in range(callers):
                heappush(self._waiting, (self.world.now, partition, self._random.randrange(self.processes), 0))

    def run(self, seconds: float) -> None:
        """Let traffic flow for so many seconds."""
        for _ in range(round(seconds)):
            admitted = throttled = 0
            for _ in range(round(1 / _TICK)):
                self.world.now += _TICK
                self.world.finish_resizes()
                more, refused = self._tick()
                admitted, throttled = admitted + more, throttled + refused
            self.history.append((self.world.now - START, admitted, throttled))

    def count(self, partition: str) -> int:
        """Return the shard count of a partition."""
        state = self.world.counts.get(partition)
        return state.count if state else self.shards.initial

    def admitted_share(self, seconds: float) -> float:
        """Return the share of requests that were admitted in the last seconds."""
        last = self.history[-round(seconds) :]
        admitted, throttled = sum(each[1] for each in last), sum(each[2] for each in last)
        return admitted / (admitted + throttled)

    def _tick(self) -> tuple[int, int]:
        admitted = failed = 0
        counts = {partition: self.count(partition) for partition in (*self.rates, *self.callers)}
        for partition, process, attempt in self._due():
            key = f"{partition}:{self._random.randrange(counts[partition])}"
            throttle = self.model.admit(self.world.now - START, Access(key, str(self._random.random()), UNITS))
            demand, request = self._demands[process], {"TableName": _TABLE, "Item": {"PK": {"S": key}}}
            if throttle is None:
                admitted += 1
                if attempt:
                    self._retries[process].executed("PutItem", request, {}, [_HOT])
                if demand.active:
                    demand.admitted("PutItem", request, {}, _TABLE)
            elif attempt < len(self.pauses):
                again = self.world.now + self.pauses[attempt] * (0.5 + self._random.random())
                heappush(self._waiting, (again, partition, process, attempt + 1))
            else:
                failed += 1
                if demand.active:
                    demand.refused("PutItem", request, _error(throttle), _TABLE)
                self._growths[process].throttled(self._entity, partition, _error(throttle))
            answered = throttle is None or attempt >= len(self.pauses)
            if answered and partition in self.callers:
                heappush(self._waiting, (self.world.now + _ANSWER_SECONDS, partition, process, 0))
        return admitted, failed

    def _due(self) -> Iterator[tuple[str, int, int]]:
        """Yield the requests of this tick: those that are sent again, and new ones."""
        random, rates = self._random, list(self.rates.values())
        while self._waiting and self._waiting[0][0] <= self.world.now:
            yield heappop(self._waiting)[1:]
        requests = int(sum(rates) / UNITS * _TICK + random.random()) if rates else 0
        for partition in random.choices(list(self.rates), rates, k=requests) if requests else ():
            yield partition, random.randrange(self.processes), 0


@cache
def _error(throttle: Throttle) -> ThrottledError:
    error = classify(Refusal("PutItem", 400, throttle.code, throttle.message, throttle.body()))
    assert isinstance(error, ThrottledError)
    return error
