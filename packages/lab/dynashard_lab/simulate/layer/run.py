"""Runs a scenario through the sharding layer."""

import time
from dataclasses import replace
from math import ceil, inf
from random import Random
from typing import Final

from dynashard.growth.settings import GrowthSettings
from dynashard.resharding import Resharder, Scope
from dynashard.service import Dynashard
from dynashard.topology import Phase, Record, family_of, partition_key
from dynashard.topology.records import decode
from dynashard_lab.simulate.engine.engine import Engine
from dynashard_lab.simulate.engine.tables import ITEM_TABLE, TOPOLOGY_TABLE, Database, StoredKey
from dynashard_lab.simulate.layer.driver import Driver
from dynashard_lab.simulate.layer.entities import Items
from dynashard_lab.simulate.layer.process import (
    TABLE,
    TOPOLOGY,
    GrowthEvents,
    GrowthUnits,
    caller_of,
    clocks_off,
    open_process,
    open_resharder,
)
from dynashard_lab.simulate.layer.readback import Found, read_back
from dynashard_lab.simulate.layer.traffic import Demand, Tally
from dynashard_lab.simulate.layer.watch import Moment, Watch
from dynashard_lab.simulate.model import TABLE as OWN
from dynashard_lab.simulate.run import LayerResult, Result, build, dollars_of, rehearse, settled_rate
from dynashard_lab.simulate.scenario import LayerSpec, Resize, Scenario
from dynashard_lab.simulate.traffic import flows, mean_units
from dynashard_lab.simulate.wire import Executed, Traffic, World

_POINTS: Final = 240
_MONTH_SECONDS: Final = 730 * 3_600


def run_layer(scenario: Scenario, layer: LayerSpec) -> Result:
    """Run a scenario through the layer. Cost: some 150 microseconds for each operation."""
    return _Run(scenario, layer).result()


class _Run:
    def __init__(self, scenario: Scenario, layer: LayerSpec) -> None:
        self._scenario = scenario
        self._layer = layer
        self._model = build(scenario)
        indexes = {name: key for name, key in ITEM_TABLE.indexes.items() if name in scenario.indexes}
        self._database = Database(**{TABLE: replace(ITEM_TABLE, indexes=indexes), TOPOLOGY: TOPOLOGY_TABLE})
        self._models = {TABLE: self._model}
        self._begin = rehearse(scenario, self._model, flows(scenario), Random(scenario.settings.seed))
        self._paid_before = self._dollars(self._begin)
        self._world = World(Engine(self._database), self._models, seed=scenario.settings.seed, begin=self._begin)
        self._tally = Tally()
        self._events = GrowthEvents(clock=lambda: self._world.actors.seconds)
        random = self._world.random
        made = {name: Items(name, spec, layer, random) for name, spec in scenario.demands.items()}
        self._entities = [items.model for items in made.values()]
        self._units = GrowthUnits(counting=lambda: bool(self._world.traffic.throttled))
        processes = [self._open_process(ahead) for ahead in clocks_off(layer)]
        self._demands = {
            name: Demand(
                self._world.actors,
                scenario.demands[name],
                items,
                [caller_of(process, items) for process in processes],
                tally=self._tally,
                random=random,
                on_end=self._load_ended,
            )
            for name, items in made.items()
        }
        self._resharder = self._open_resharder(self._units.of_worker)
        self._watch = Watch(self._point, self._notes)
        self._store()

    def _open_process(self, ahead: float) -> Dynashard:
        counted = self._units.of_process
        return open_process(self._world, self._layer, self._entities, self._events, ahead=ahead, executed=counted)

    def _open_resharder(self, executed: Executed | None = None) -> Resharder:
        return open_resharder(self._world, self._layer, self._entities, self._scenario.settings, executed)

    def _store(self) -> None:
        """Store what exists before the run, without limits and in no time."""
        if not any(demand.stored for demand in self._scenario.demands.values()):
            return
        spec = self._layer.model_copy(update={"request_seconds": 0.0})
        process = open_process(self._world, spec, self._entities, self._events)

        def store() -> None:
            for demand in self._demands.values():
                demand.store(caller_of(process, demand.items))

        limited = dict(self._models)
        self._models.clear()
        self._world.actors.spawn(store)
        self._world.actors.run()
        self._models.update(limited)
        self._world.traffic.requests = 0

    def result(self) -> Result:
        begun = time.process_time()
        actors, tick = self._world.actors, self._scenario.tick
        for demand in self._demands.values():
            demand.start(self._layer.loaders)
        driver = Driver(actors, self._resharder, self._open_resharder().poll)
        actors.spawn(driver.run)
        actors.spawn(lambda: driver.narrow(GrowthSettings(self._layer.growth, quiet_seconds=self._layer.quiet)))
        for resize in self._layer.resizes:
            actors.spawn(lambda resize=resize: self._resize(resize), after=resize.at)  # type: ignore[misc]
        actors.spawn(lambda: self._watch.run(actors, tick=tick, every=max(tick, self._scenario.seconds / _POINTS)))
        actors.run(self._scenario.seconds)
        seconds = actors.seconds
        self._watch.point(seconds)
        traffic = replace(self._world.traffic)
        reasons = dict(traffic.reasons.most_common())
        layer = self._layer_result(traffic, round(time.process_time() - begun, 2))
        tally, resources = self._tally, self._model.resources.values()
        dollars = self._dollars(self._begin + seconds) - self._paid_before
        return Result(
            seconds=round(seconds, 3),
            finished=not any(demand.loading and demand.ended is None for demand in self._demands.values()),
            asked=tally.asked,
            admitted=tally.done,
            throttled=tally.throttled,
            reasons=reasons,
            admitted_rate=tally.done / seconds,
            settled_rate=settled_rate(self._watch.points, seconds),
            partitions=len(self._model.resources[OWN].partitions),
            heat_splits=sum(each.partitions.heat_splits for each in resources),
            size_splits=sum(each.partitions.size_splits for each in resources),
            dollars_a_month=dollars / seconds * _MONTH_SECONDS,
            points=self._watch.points,
            layer=layer,
        )

    def _layer_result(self, traffic: Traffic, real_seconds: float) -> LayerResult:
        shards = {name: self._count(name) for name in self._demands}
        units = replace(self._units)
        # What follows reads without limits.
        self._models.clear()
        moved = self._moved()
        found = self._read_back()
        return LayerResult(
            requests=traffic.requests,
            throttled_requests=traffic.throttled,
            operations={str(kind): counts for kind, counts in sorted(self._tally.kinds.items())},
            failed=dict(self._tally.failed),
            shards=shards,
            optimum={name: self._optimum(name) for name in self._demands},
            adapted_seconds=self._watch.adapted(),
            acknowledged=sum(demand.operations.acknowledged for demand in self._demands.values()),
            lost=None if found is None else found.lost,
            doubled=None if found is None else found.doubled,
            stale=None if found is None else found.stale,
            moved=moved,
            growth_units=units.resizes,
            topology_read_units=units.reads,
            growth=self._events.first(),
            phases=self._watch.phases,
            real_seconds=real_seconds,
        )

    def _dollars(self, now: float) -> float:
        return sum(dollars_of(each, now, self._model.settings) for each in self._model.resources.values())

    def _resize(self, resize: Resize) -> None:
        items = self._demands[resize.demand].items
        scope = Scope(items.entity, partition=self._partition(items))
        budget, share = resize.budget, resize.share
        if items.entity.time is None:
            expected = self._resharder.estimate(scope, resize.to, budget=budget, share=share)
            self._events.note(f"operator: {expected.origin} -> {expected.target} shards {expected.text}")
        self._resharder.start(scope, resize.to, budget=budget, share=share, survey=False)

    def _partition(self, items: Items) -> str:
        return items.entity.logical_partition({"tenant_id": items.tenants[0]})

    def _record(self, name: str) -> Record | None:
        """The record of a demand's first logical partition, or of its family, read without a request."""
        items = self._demands[name].items
        table = self._database[TOPOLOGY]
        for key in (partition_key(items.entity, self._partition(items)), family_of(items.entity)):
            row = table.row(StoredKey(key, ""))
            if row is not None:
                return decode(row.item)
        return None

    def _count(self, name: str) -> int:
        """The count under which a demand's new items are stored, by the true time."""
        record = self._record(name)
        if record is None:
            return self._scenario.demands[name].shards
        form = self._demands[name].items.entity.time
        if form is not None:
            return record.count_of(form.first(self._world.actors.now))
        moving = record.phase in (Phase.MOVE, Phase.SETTLE)
        return record.target if moving and record.target is not None else record.count

    def _optimum(self, name: str) -> int:
        demand, settings = self._scenario.demands[name], self._model.settings
        rates = [demand.rate] if isinstance(demand.rate, float) else [rate for _, rate in demand.rate]
        share = 1.0 / sum(1.0 / rank**demand.skew for rank in range(1, demand.partitions + 1))
        writes, reads = mean_units(demand, settings)
        shards = max(writes / settings.partition_write_units, reads / settings.partition_read_units)
        return int(1 << max(0, ceil(max(rates) * share * shards) - 1).bit_length())

    def _load_ended(self) -> None:
        """End the run when all demands are loads that have ended."""
        if all(demand.ended is not None for demand in self._demands.values()):
            self._world.actors.stop()

    def _notes(self) -> list[str]:
        """Return the phase and the counts of each demand's first logical partition."""
        notes = []
        for name in self._demands:
            record = self._record(name)
            if record is not None:
                target = "" if record.target is None else f" to {record.target}"
                phase = f"epoch {record.epochs[-1].state}" if target and record.epochs else record.phase
                notes.append(f"{name}: {phase}, {record.count}{target} shards")
        return notes

    def _point(self) -> Moment:
        table, tally = self._model.resources[OWN], self._tally
        first = next(iter(self._demands))
        return Moment(
            (tally.asked, tally.done, tally.throttled),
            len(table.partitions),
            table.writes.capacity.units,
            self._count(first),
        )

    def _moved(self) -> int:
        """Return how many items the last resize of each demand has moved."""
        scopes = [Scope(each.items.entity, partition=self._partition(each.items)) for each in self._demands.values()]
        moved: list[int] = []
        self._world.actors.spawn(lambda: moved.extend(self._resharder.status(scope).moved for scope in scopes))
        self._world.actors.run(inf)
        return sum(moved)

    def _read_back(self) -> Found | None:
        """Read all items by a new process, and compare them with what was acknowledged."""
        if not self._layer.read_back:
            return None
        process = open_process(self._world, self._layer, self._entities, self._events)
        found: list[Found] = []

        def read() -> None:
            found.extend(
                read_back(caller_of(process, demand.items).collection, demand.operations.stored())
                for demand in self._demands.values()
            )

        actors = self._world.actors
        actors.spawn(read)
        actors.run(inf)
        return Found(*map(sum, zip(*found, strict=True)))
