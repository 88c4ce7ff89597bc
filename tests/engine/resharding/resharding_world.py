"""Entities, tables and a resharder for tests of changing counts, with time in the test's hands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from dynashard import Collection, Dynashard, Entity, Index, Key, Registry, Shards, definition
from dynashard.entity import ItemKey
from dynashard.resharding import Resharder, Scope, Status, Step, Timing
from dynashard.resharding.status import stage_of
from dynashard.routing import home, logical_partition_of
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.testing.faults import Fault, FaultyTransport
from dynashard.topology import LeasedTopology, Record, TopologyTable
from dynashard.transport import Transport
from tests.engine.topology.topology_world import Clock, one_clock, topology_table_on

REGISTRY = Registry()
TIMING = Timing(lease=30.0, operation=10.0, skew=1.0, lag=0.0)
WAIT = TIMING.wait(30.0)


class Thing(
    Entity,
    name="move.v1.Thing",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[
        Index("GSI1", "by_rank", "{tenant}", "{rank:04d}"),
        Index("GSI2", "by_colour", "{tenant}:{colour}", "{id}", shards=Shards(2)),
    ],
    expires="until",
    registry=REGISTRY,
):
    tenant: str
    id: str
    rank: int | None = None
    colour: str | None = None
    text: str = ""
    until: datetime | None = None


class Old(
    Entity,
    name="move.v1.Old",
    key=Key("{tenant}", "{id}"),
    shards=Shards(8, adopt="unsharded"),
    registry=REGISTRY,
):
    """An entity of a table that was never sharded."""

    tenant: str
    id: str
    text: str = ""


class Event(
    Entity,
    name="move.v1.Event",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=2, placement="random"),
    expires="until",
    registry=REGISTRY,
):
    """An entity with random placement whose items are only created."""

    tenant: str
    id: str
    until: datetime | None = None


class Modulo(Entity, name="move.v1.Modulo", key=Key("{id}", "{n}"), shards=Shards(10, "modulo"), registry=REGISTRY):
    id: str
    n: str


class Bare(Entity, name="move.v1.Bare", key=Key("{id}", "{n}"), registry=REGISTRY):
    id: str
    n: str


class Member(
    Entity, name="move.v1.Member", key=Key("{team}", "m#{id}", prefix="team"), shards=Shards(2), registry=REGISTRY
):
    team: str
    id: str


class Shift(
    Entity, name="move.v1.Shift", key=Key("{team}", "s#{at}", prefix="team"), shards=Shards(2), registry=REGISTRY
):
    team: str
    at: str


class Leaf(
    Entity,
    name="move.v1.Leaf",
    key=Key("{tree}", "{id}", prefix="", separator="_"),
    shards=Shards(4),
    registry=REGISTRY,
):
    """Recognised by `Type`, or by the form of its sort keys."""

    tree: str
    id: str


ENTITIES: tuple[type[Entity], ...] = (Thing, Old, Event, Modulo, Bare, Member, Shift, Leaf)


def whole(model: type[Entity]) -> Scope:
    """Return the scope of all partitions of an entity."""
    return Scope(definition(model))


def partition(model: type[Entity], name: str = "abc") -> Scope:
    """Return the scope of one partition of an entity."""
    entity = definition(model)
    return Scope(entity, f"{entity.prefix}:{name}")


def index(model: type[Entity], name: str) -> Scope:
    """Return the scope of an index of an entity."""
    entity = definition(model)
    return Scope(entity, index=entity.indexes[name])


ABC = partition(Thing)
STAGES = ("pending", "prepare", "move", "settle", "sweep", "stable")
"""The stages of a resize, in their order; `stable` comes after its markers are swept."""


@dataclass
class Moving:
    """Two tables, a clock, and resharders and clients on them.

    Attributes:
        segments: how many tasks a pass has.
    """

    inner: Transport
    table: str
    topology: str
    segments: int = 3
    clock: Clock = field(default_factory=Clock)
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = count(1)
        self.resharder = self.new()

    def new(self, plan: Sequence[Fault] = (), **more: Any) -> Resharder:
        """Return a new resharder that meets these faults."""
        self.faulty = FaultyTransport(self.inner, plan)
        return self.on(self.faulty, **more)

    def on(self, transport: Transport, **more: Any) -> Resharder:
        """Return a resharder on a transport."""
        settings = {"timing": TIMING, "entities": ENTITIES, "segments": self.segments, **more}
        return Resharder(
            transport,
            table=self.table,
            topology_table=self.topology,
            runtime=Runtime(self.clock, self.sleep, lambda: 0.5),
            new_id=lambda: f"change-{next(self.ids)}",
            **settings,
        )

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.now += seconds

    def of(self, model: type[Any]) -> Collection[Any]:
        """Return the items of a new client without a view."""
        return self.client().collection(model)

    def client(self) -> Dynashard:
        """Return a new client without a view."""
        topology = LeasedTopology(self.inner, self.topology, lease=30.0, runtime=one_clock(self.clock))
        keys = ["0123456789abcdef"]
        return Dynashard(self.inner, table=self.table, cursor_keys=keys, topology=topology, runtime=Runtime(self.clock))

    def step(self, key: str, resharder: Resharder | None = None, *, seconds: float = 1e9) -> Step:
        """Advance a resize by one step, with its work and its wait."""
        resharder = resharder or self.resharder
        step = resharder.advance(key)
        for task in step.tasks:
            while not resharder.work(key, task, seconds=seconds):
                pass
        if step.kind == "wait":
            self.clock.now += step.seconds
        return step

    def until(self, scope: Scope, stage: str, resharder: Resharder | None = None) -> Status:
        """Advance a resize until a stage is published."""
        for _ in range(60):
            if stage_of(self.record(scope.key)) == stage:
                return self.resharder.status(scope)
            self.step(scope.key, resharder)
        raise AssertionError(f"never came to {stage}: {self.resharder.status(scope)}")

    def finish(self, scope: Scope, resharder: Resharder | None = None) -> Status:
        """Advance a resize until no work is left."""
        for _ in range(60):
            if self.step(scope.key, resharder).kind == "done":
                return self.resharder.status(scope)
        raise AssertionError(f"never ended: {self.resharder.status(scope)}")

    def resize(self, scope: Scope, to: int, **more: Any) -> Status:
        """Change a count, from the request to the sweep."""
        self.resharder.start(scope, to, **more)
        return self.finish(scope)

    def fill(self, model: type[Any], amount: int, *, tenant: str = "abc", **fields: Callable[[int], Any]) -> None:
        """Create items of a partition with these fields."""
        items = [
            model(tenant=tenant, id=f"{n:04d}", **{name: value(n) for name, value in fields.items()})
            for n in range(amount)
        ]
        self.of(model).batch_write(put=items)

    def put(self, item: Mapping[str, Any]) -> None:
        """Store an item directly in the table."""
        self.inner.call("PutItem", {"TableName": self.table, "Item": dict(item)})

    def raw(self) -> list[dict[str, Any]]:
        """Return all stored items."""
        items: list[dict[str, Any]] = []
        request: dict[str, Any] = {"TableName": self.table, "ConsistentRead": True}
        while True:
            answer = self.inner.call("Scan", request)
            items += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return items
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def marks(self) -> list[dict[str, Any]]:
        return [item for item in self.raw() if MOVED_TO in item]

    def places(self, model: type[Entity]) -> dict[tuple[str, str], list[str]]:
        """Return the stored partition keys of every item of an entity's prefix by its key, without markers."""
        entity, found = definition(model), dict[tuple[str, str], list[str]]()
        for item in self.raw():
            if MOVED_TO not in item and item[PK]["S"].startswith(f"{entity.prefix}:"):
                key = (logical_partition_of(entity, item[PK]["S"]), item[SK]["S"])
                found.setdefault(key, []).append(item[PK]["S"])
        return found

    def misplaced(self, model: type[Entity], shards: int, name: str | None = None) -> list[tuple[str, str]]:
        """Return items of a partition, or of all, that are not stored exactly once and at home under a count."""
        entity = definition(model)
        return [
            key
            for key, places in self.places(model).items()
            if (name is None or key[0] == f"{entity.prefix}:{name}") and places != [home(entity, ItemKey(*key), shards)]
        ]

    def record(self, key: str) -> Record:
        record = TopologyTable(self.inner, self.topology).find(key)
        assert record is not None
        return record

    def progress_items(self) -> list[dict[str, Any]]:
        items = self.inner.call("Scan", {"TableName": self.topology, "ConsistentRead": True})["Items"]
        return [item for item in items if item["partition"]["S"].startswith("@")]


@contextmanager
def moving_world(transport: Transport, table: str, *, segments: int = 3) -> Iterator[Moving]:
    """Open a world on an empty table. With one segment a resize takes half of the requests."""
    with topology_table_on(transport) as topology:
        yield Moving(transport, table, topology, segments)
