"""Processes that grow counts against the model of DynamoDB's partitions, in virtual time."""

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from dynashard import Shards
from dynashard.errors import ReshardRefusedError, ThrottledError
from dynashard.resharding.scope import Scope
from dynashard.transport.classification import Refusal, classify
from dynashard_serving.growth_demand import Demand
from dynashard_serving.growth_policy import CountState, Growth
from tests.unit.serving.growth_policy_world import START, Loads, World, entity
from tools.simulate.capacity import OnDemand, Provisioned
from tools.simulate.model import Access, TableModel
from tools.simulate.resource import Capacities, Resource
from tools.simulate.run import ARN
from tools.simulate.settings import Settings
from tools.simulate.throttle import Throttle

UNITS = 100.0
"""Write units of each request: large items make few requests of many units."""
CHANGE_SECONDS = 240.0
"""Four waits of a minute."""
_TICK = 0.1
_TABLE = "table"


@dataclass
class Slow(World):
    """A topology whose changes take their time."""

    ends: dict[str, tuple[float, int]] = field(default_factory=dict)
    asked_at: list[float] = field(default_factory=list)

    def ask(self, scope: Scope, target: int) -> object:
        state = self.counts[scope.key]
        if state.busy:
            raise ReshardRefusedError("one is running already", reason="running")
        self.asked.append((scope.key, target))
        self.asked_at.append(self.now)
        self.counts[scope.key] = CountState(state.count, state.changed, busy=True)
        self.ends[scope.key] = (self.now + CHANGE_SECONDS, target)
        return None

    def finish_changes(self) -> None:
        for key in [key for key, (at, _) in self.ends.items() if at <= self.now]:
            self.counts[key] = CountState(self.ends.pop(key)[1], self.now, busy=False)


@dataclass
class Loop:
    """Requests that arrive at a rate for each logical partition, and are lost if they are throttled.

    Attributes:
        rates: write units a second by logical partition.
        processes: how many processes the requests are divided among at random.
        units: write units of the table: warm ones on demand, or `provisioned`.
        described: whether the processes know these.
    """

    rates: dict[str, float]
    processes: int = 1
    units: float = 40_000.0
    provisioned: bool = False
    described: bool = True
    shards: Shards = field(default_factory=lambda: Shards(1, max=1024))
    seed: int = 1
    world: Slow = field(default_factory=Slow)
    history: list[tuple[float, int, int]] = field(default_factory=list)
    """At the end of each second: the time since the start, and the requests that were admitted and throttled."""

    def __post_init__(self) -> None:
        settings = Settings()
        reads = OnDemand(40_000, 40_000, settings)
        writes = Provisioned(self.units, settings) if self.provisioned else OnDemand(self.units, 40_000, settings)
        self.model = TableModel(Resource(ARN, Capacities(writes, reads), settings), {}, settings)
        self._random = Random(self.seed)
        self._entity = entity(self.shards)
        load = Loads(units=self.units if self.described else None)
        self._demands = [Demand(lambda: self.world.now) for _ in range(self.processes)]
        self._growths: list[Growth] = [
            self.world.process(random=self._random.random(), waits=False, load=load, demand=demand)
            for demand in self._demands
        ]

    def run(self, seconds: float) -> None:
        """Let traffic flow for so many seconds."""
        for _ in range(round(seconds)):
            admitted = throttled = 0
            for _ in range(round(1 / _TICK)):
                self.world.now += _TICK
                self.world.finish_changes()
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
        random, partitions = self._random, list(self.rates)
        requests = int(sum(self.rates.values()) / UNITS * _TICK + random.random())
        counts = {partition: self.count(partition) for partition in partitions}
        throttled = 0
        for partition in random.choices(partitions, list(self.rates.values()), k=requests):
            key = f"{partition}:{random.randrange(counts[partition])}"
            process = random.randrange(self.processes)
            throttle = self.model.admit(self.world.now - START, Access(key, str(random.random()), UNITS))
            if throttle is None:
                if self._demands[process].active:
                    request: dict[str, Any] = {"TableName": _TABLE, "Item": {"PK": {"S": key}}}
                    self._demands[process].admitted("PutItem", request, {}, _TABLE)
            else:
                throttled += 1
                self._growths[process].throttled(self._entity, partition, _error(throttle))
        return requests - throttled, throttled


@cache
def _error(throttle: Throttle) -> ThrottledError:
    error = classify(Refusal("PutItem", 400, throttle.code, throttle.message, throttle.body()))
    assert isinstance(error, ThrottledError)
    return error
