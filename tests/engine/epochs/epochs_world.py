"""Entities placed by epochs, tables, and processes whose clocks are off, with time in the test's hands."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import count
from typing import Any

from ksuid import Ksuid

from dynashard import Dynashard, Entity, Index, Key, Registry, Shards, definition, new_id
from dynashard.key_clock import ClockBounds
from dynashard.resharding import Resharder, Scope, Step, Timing
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK
from dynashard.testing.faults import Fault, FaultyTransport
from dynashard.topology import Record, TopologyTable
from dynashard.transport import Transport
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.interface import Resend, Wire
from tests.engine.topology.topology_world import Clock, topology_table_on

REGISTRY = Registry()
LEASE, CLOCKS = 30.0, ClockBounds(off=2.0, ahead=3.0)
TIMING = Timing(lease=LEASE, operation=5.0, skew=0.0, lag=0.0, clocks=CLOCKS, margin=4.0)
KEYS = ["0123456789abcdef"]


class Event(
    Entity,
    name="epoch.v1.Event",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=64, placement="epochs"),
    indexes=[Index("GSI1", "by_kind", "{tenant}:{kind}", "{id}", shards=Shards(2))],
    registry=REGISTRY,
):
    tenant: str
    id: str = new_id()
    n: int = 0
    kind: str | None = None


class Reading(
    Entity,
    name="epoch.v1.Reading",
    key=Key("{sensor}", "{at}#{id}"),
    shards=Shards(8, adopt="unsharded", placement="epochs"),
    registry=REGISTRY,
):
    """An entity of a table that was never sharded, whose keys begin with a moment."""

    sensor: str
    at: datetime
    id: str
    n: int = 0


ENTITIES: tuple[type[Entity], ...] = (Event, Reading)


def declared(placement: str, shards: int = 1) -> type[Any]:
    """Return `Event` as it is declared with another placement."""

    class Declared(
        Entity,
        name="epoch.v1.Event",
        key=Key("{tenant}", "{id}"),
        shards=Shards(start=shards, max=64, placement=placement),
        registry=Registry(),
    ):
        tenant: str
        id: str = new_id()
        n: int = 0
        kind: str | None = None

    return Declared


def ksuid(at: float, payload: int) -> str:
    """Return a KSUID of a moment, rounded down to its second."""
    return str(Ksuid(datetime.fromtimestamp(int(at), UTC), payload.to_bytes(16)))


class DatedTransport(FaultyTransport):
    """Answers have dates, from which a process learns that its clock is off."""

    def __init__(self, inner: Transport, clock: Callable[[], float], off: float) -> None:
        super().__init__(inner)
        self.clock_offset = ClockOffset()
        self._clock, self.off = clock, off

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        answer = super().call(operation, request, resend=resend)
        now = self._clock()
        date = format_datetime(datetime.fromtimestamp(now, UTC), usegmt=True)
        self.clock_offset.observe(date, now + self.off, now + self.off)
        return answer


@dataclass
class Epochs:
    """Two tables, the true time, and processes on them."""

    inner: Transport
    table: str
    topology: str
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.rng = random.Random(7)
        self._ids, self._n = count(1), count()
        self.written: dict[str, int] = {}

    def runtime(self, off: float = 0.0) -> Runtime:
        """Return the time of a process whose wall clock is off."""
        return Runtime(lambda: self.clock() + off, self.sleep, lambda: 0.5, self.clock)

    def sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def process(
        self, off: float = 0.0, transport: Transport | None = None, *, runtime: Runtime | None = None
    ) -> Dynashard:
        """Return a new process without a view."""
        return Dynashard(
            transport or self.inner,
            table=self.table,
            topology_table=self.topology,
            cursor_keys=KEYS,
            lease=LEASE,
            runtime=runtime or self.runtime(off),
            clocks=CLOCKS,
            growth="off",
        )

    def resharder(
        self, off: float = 0.0, plan: Sequence[Fault] = (), *, wire: FaultyTransport | None = None, **more: Any
    ) -> Resharder:
        """Return a new controller."""
        self.faulty = wire or FaultyTransport(self.inner, plan)
        return Resharder(
            self.faulty,
            table=self.table,
            topology_table=self.topology,
            runtime=self.runtime(off),
            new_id=lambda: f"resize-{next(self._ids)}",
            **{"entities": ENTITIES, "timing": TIMING, **more},
        )

    def dated(self, off: float) -> DatedTransport:
        """Return the transport of a process that learns that its clock is off."""
        return DatedTransport(self.inner, self.clock, off)

    def id(self, at: float | None = None) -> str:
        """Return a new id of a moment, by default of now."""
        return ksuid(self.clock() if at is None else at, self.rng.getrandbits(128))

    def write(self, db: Dynashard, number: int = 1, *, tenant: str = "abc", at: float | None = None) -> list[str]:
        """Create events of a moment, by default of now, and remember them."""
        made = [db.collection(Event).create(tenant=tenant, id=self.id(at), n=next(self._n)) for _ in range(number)]
        self.written |= {event.id: event.n for event in made}
        return [event.id for event in made]

    def grow(self, to: int, scope: Scope | None = None, resharder: Resharder | None = None) -> None:
        """Resize, from the request until the epoch has begun."""
        resharder = resharder or self.resharder()
        scope = scope or partition()
        resharder.start(scope, to)
        self.finish(scope, resharder)

    def finish(self, scope: Scope | None = None, resharder: Resharder | None = None) -> list[Step]:
        """Advance a resize until it has ended."""
        scope, resharder, steps = scope or partition(), resharder or self.resharder(), []
        for _ in range(60):
            steps.append(resharder.advance(scope.key))
            if steps[-1].kind == "done":
                return steps
            self.clock.now += steps[-1].seconds
        raise AssertionError(f"never ended: {resharder.status(scope)}")

    def record(self, key: str = "epoch.v1.Event:abc") -> Record:
        record = TopologyTable(self.inner, self.topology).find(key)
        assert record is not None
        return record

    def counts(self, key: str = "epoch.v1.Event:abc") -> list[tuple[int, str]]:
        """Return the counts and states of a record's epochs."""
        return [(each.count, each.state.value) for each in self.record(key).epochs]

    def raw(self) -> dict[str, str]:
        """Return the stored partition keys of all items, by their sort keys."""
        items = self.inner.call("Scan", {"TableName": self.table, "ConsistentRead": True})["Items"]
        assert len({item[SK]["S"] for item in items}) == len(items), "an item is stored twice"
        return {item[SK]["S"]: item[PK]["S"] for item in items}

    def shards(self) -> set[str]:
        """Return the shards that hold items."""
        return {place.rpartition(":")[2] for place in self.raw().values()}


def partition(tenant: str = "abc", model: type[Entity] = Event) -> Scope:
    """Return the scope of a partition."""
    entity = definition(model)
    return Scope(entity, f"{entity.prefix}:{tenant}")


def whole(model: type[Entity] = Event) -> Scope:
    """Return the scope of all partitions of an entity."""
    return Scope(definition(model))


@contextmanager
def epochs_world(transport: Transport, table: str) -> Iterator[Epochs]:
    """Open a world on an empty table."""
    with topology_table_on(transport) as topology:
        yield Epochs(transport, table, topology)
