"""Runs a scenario in virtual time."""

from collections import Counter
from dataclasses import dataclass, field, replace
from math import ceil, inf
from random import Random
from typing import Final

from dynashard_lab.simulate.capacity import OnDemand, Provisioned, Tracking
from dynashard_lab.simulate.model import TABLE, TableModel
from dynashard_lab.simulate.resource import Capacities, Resource
from dynashard_lab.simulate.scenario import Scenario, TableSpec
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.traffic import Flow, flows

ARN: Final = "arn:aws:dynamodb:eu-west-1:123456789012:table/simulated"
_POINTS: Final = 240
"""Points of a run in pictures and in JSON."""
_MONTH_HOURS: Final = 730


@dataclass(frozen=True, slots=True)
class Point:
    """What happened between the point before and this one. Rates are requests a second.

    Attributes:
        seconds: its virtual time.
        asked: the rate of requests.
        admitted: the rate of those that were admitted.
        throttled: the rate of those that were throttled.
        partitions: the table's partitions at the end.
        write_units: the write units a second that the table had at the end.
        shards: the shard count for new items of the first demand, in a run of the layer; the largest with many tenants.
    """

    seconds: float
    asked: float
    admitted: float
    throttled: float
    partitions: int
    write_units: float
    shards: int = 0


@dataclass(frozen=True, slots=True)
class GrowingResult:
    """What only a run with many tenants shows.

    Attributes:
        tenants: how many there are.
        counts: how many tenants have each shard count above 1 at the end.
        resizes: how often a count was to grow.
        declined: how many tenants had a resize that would have taken too long to start by itself.
        moved: items that the resizes move.
        dollars: what the resizes cost on demand.
        longest_seconds: how long the longest of them takes.
    """

    tenants: int
    counts: dict[int, int]
    resizes: int
    declined: int
    moved: int
    dollars: float
    longest_seconds: float


@dataclass(slots=True)
class OperationCounts:
    """What became of operations of one kind: how many have begun, were acknowledged, and were throttled for good."""

    asked: int = 0
    done: int = 0
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class LayerResult:
    """What only a run of the layer shows.

    Attributes:
        requests: requests that the layer sent, retries included.
        throttled_requests: those among them that were throttled, in batches by item.
        operations: what became of the operations of each kind.
        failed: operations that were refused for another reason than a throttle, by the name of the error.
        shards: the shard count of each demand's first logical partition at the end.
        optimum: the least power of two that carries its greatest rate, 1,000 write units and 3,000 read units a second
            for each shard.
        adapted_seconds: from the first throttled operation until less than a tenth was throttled, for good; None if
            that did not happen; 0 if none was.
        acknowledged: items that were certainly stored.
        lost: those among them that were not found in the end; None if nothing was read back.
        doubled: items that a listing has returned twice.
        stale: acknowledged items whose value is not the one that was acknowledged last.
        moved: items that resizes have moved.
        growth_units: read and write units of requesting resizes and of carrying them out, with what moves items.
        topology_read_units: those with which processes have read the topology table since the first throttle.
        growth: events of the growth policy: their seconds, and what they say, the first of each kind.
        phases: phases of resizes: their seconds, and the phase and the counts from then on.
        real_seconds: the CPU that the run took.
    """

    requests: int
    throttled_requests: int
    operations: dict[str, OperationCounts]
    failed: dict[str, int]
    shards: dict[str, int]
    optimum: dict[str, int]
    adapted_seconds: float | None
    acknowledged: int
    lost: int | None
    doubled: int | None
    stale: int | None
    moved: int
    growth_units: float
    topology_read_units: float
    growth: list[tuple[float, str]]
    phases: list[tuple[float, str]]
    real_seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a run. In a run of the layer, operations take the place of requests.

    Attributes:
        seconds: its length in virtual time: until all items were written, if it was a load.
        finished: whether a load has written all items; True for other runs.
        asked: requests.
        admitted: requests that were admitted.
        throttled: requests that were throttled.
        reasons: how many throttled requests named each reason.
        admitted_rate: admitted requests a second, over the whole run.
        settled_rate: the same over the last quarter of the run.
        partitions: the table's partitions at the end.
        heat_splits: splits for heat of the table and its indexes.
        size_splits: splits at 10 GB.
        dollars_a_month: what the capacity of table and indexes costs if every month is like this run.
        points: the run over time.
        layer: what a run of the layer shows; None without one.
        growing: what a run with many tenants shows; None without one.
    """

    seconds: float
    finished: bool
    asked: int
    admitted: int
    throttled: int
    reasons: dict[str, int]
    admitted_rate: float
    settled_rate: float
    partitions: int
    heat_splits: int
    size_splits: int
    dollars_a_month: float
    points: list[Point] = field(repr=False)
    layer: LayerResult | None = None
    growing: GrowingResult | None = None


def run(scenario: Scenario) -> Result:
    """Run a scenario. Cost: some 5 microseconds for each flow and tick."""
    return _Run(scenario).result()


def build(scenario: Scenario) -> TableModel:
    """Return the model of a scenario's table and indexes.

    A limit saves at least a tick of units, because the requests of a tick are decided about at its end.
    """
    settings = replace(scenario.settings, limit_burst_seconds=max(scenario.settings.limit_burst_seconds, scenario.tick))
    indexes = {name: _resource(f"{ARN}/index/{name}", spec, settings) for name, spec in scenario.indexes.items()}
    return TableModel(_resource(ARN, scenario.table, settings), indexes, settings)


def _resource(arn: str, spec: TableSpec, settings: Settings) -> Resource:
    return Resource(
        arn, _capacities(spec, settings), settings, partitions=spec.partitions, local_index=spec.local_index
    )


def _capacities(spec: TableSpec, settings: Settings) -> Capacities:
    if spec.mode == "on-demand":
        writes = max(settings.on_demand_write_units, spec.warm_write_units)
        reads = max(settings.on_demand_read_units, spec.warm_read_units)
        most = spec.most_write_units or inf
        return Capacities(
            OnDemand(writes, settings.table_write_quota, settings, maximum=most),
            OnDemand(reads, settings.table_read_quota, settings),
        )
    tracking = None
    if spec.target is not None:
        tracking = Tracking(spec.target, spec.lowest_write_units, spec.highest_write_units)
    return Capacities(
        Provisioned(spec.write_units, settings, tracking=tracking, schedule=spec.schedule),
        Provisioned(spec.read_units, settings),
    )


def rehearse(scenario: Scenario, model: TableModel, flows_: list[Flow], random: Random) -> float:
    """Let the same traffic meet the table beforehand, and return when that ends, in seconds.

    Nothing is counted, and nothing more is stored.
    """
    before = scenario.rehearsal_seconds
    for tick in range(1, ceil(before / scenario.tick) + 1):
        now = min(tick * scenario.tick, before)
        random.shuffle(flows_)
        for flow in flows_:
            count = flow.due(scenario.demands[flow.name].rate_at(0.0) * flow.share * scenario.tick)
            for _ in flow.ask(model, now, count, stored=False):
                pass
    return before


class _Run:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._model = build(scenario)
        self._flows = flows(scenario)
        self._asked = self._admitted = 0
        self._reasons: Counter[str] = Counter()
        self._points: list[Point] = []
        self._counted = (0, 0)
        self._since = 0.0
        self._paid_before = 0.0
        self._random = Random(scenario.settings.seed)

    def result(self) -> Result:
        scenario = self._scenario
        begun = rehearse(scenario, self._model, self._flows, self._random)
        self._paid_before = self._dollars(begun)
        ticks = ceil(scenario.seconds / scenario.tick)
        every = max(1, ticks // _POINTS)
        loading = all(flow.left is not None for flow in self._flows)
        now = begun
        for tick in range(1, ticks + 1):
            now = begun + tick * scenario.tick
            self._tick(now, now - begun)
            done = loading and not any(flow.left for flow in self._flows)
            if tick % every == 0 or tick == ticks or done:
                self._point(now - begun)
            if done:
                break
        return self._summary(now - begun)

    def _turn(self) -> list[Flow]:
        """Return all flows in random order, so that none is always the first to be admitted."""
        self._random.shuffle(self._flows)
        return self._flows

    def _tick(self, now: float, seconds: float) -> None:
        requests = {name: each.rate_at(seconds) * self._scenario.tick for name, each in self._scenario.demands.items()}
        remaining = Counter[str]()
        for flow in self._flows:
            remaining[flow.name] += flow.left or 0
        for flow in self._turn():
            # A load sends what is left in random order, so a key with more left gets more of its requests.
            share = flow.share if flow.left is None else flow.left / max(1, remaining[flow.name])
            count = flow.due(requests[flow.name] * share)
            if not count:
                continue
            self._asked += count
            for part, admitted, throttle in flow.ask(self._model, now, count, stored=True):
                self._admitted += admitted
                if throttle is not None:
                    self._reasons.update({each.reason: part - admitted for each in throttle.reasons})

    def _point(self, seconds: float) -> None:
        table, length = self._model.resources[TABLE], seconds - self._since
        asked, admitted = self._asked - self._counted[0], self._admitted - self._counted[1]
        self._points.append(
            Point(
                round(seconds, 3),
                asked / length,
                admitted / length,
                (asked - admitted) / length,
                len(table.partitions),
                table.writes.capacity.units,
            )
        )
        self._counted, self._since = (self._asked, self._admitted), seconds

    def _summary(self, seconds: float) -> Result:
        resources = self._model.resources.values()
        dollars = self._dollars(self._scenario.rehearsal_seconds + seconds) - self._paid_before
        return Result(
            seconds=round(seconds, 3),
            finished=not any(flow.left for flow in self._flows),
            asked=self._asked,
            admitted=self._admitted,
            throttled=self._asked - self._admitted,
            reasons=dict(self._reasons.most_common()),
            admitted_rate=self._admitted / seconds,
            settled_rate=settled_rate(self._points, seconds),
            partitions=len(self._model.resources[TABLE].partitions),
            heat_splits=sum(each.partitions.heat_splits for each in resources),
            size_splits=sum(each.partitions.size_splits for each in resources),
            dollars_a_month=dollars / seconds * 3_600 * _MONTH_HOURS,
            points=self._points,
        )

    def _dollars(self, now: float) -> float:
        """Return what capacity has cost until now."""
        return sum(dollars_of(each, now, self._model.settings) for each in self._model.resources.values())


def settled_rate(points: list[Point], seconds: float) -> float:
    """Return the mean rate over the last quarter of a run."""
    begins, admitted, length = 0.0, 0.0, 0.0
    for point in points:
        if begins >= seconds * 0.75 or point is points[-1]:
            admitted += point.admitted * (point.seconds - begins)
            length += point.seconds - begins
        begins = point.seconds
    return admitted / length


def dollars_of(resource: Resource, now: float, settings: Settings) -> float:
    """Return what a table or an index has cost since the start."""
    if resource.provisioned:
        writes, reads = (unit_seconds / 3_600 for unit_seconds in resource.paid(now))
        return writes * settings.provisioned_write_price + reads * settings.provisioned_read_price
    writes, reads = (throughput.consumed / 1e6 for throughput in (resource.writes, resource.reads))
    return writes * settings.on_demand_write_price + reads * settings.on_demand_read_price
