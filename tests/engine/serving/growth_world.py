"""The API over entities that grow, with throttles and time that a test controls."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dynashard import Entity, Index, Key, Registry, Shards, definition, new_id
from dynashard.errors import EngineUnavailableError
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.resharding.driver import drive
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, Send, throttled
from dynashard.topology import Record, TopologyTable
from dynashard.transport import Transport, Wire
from dynashard_serving.api.app import build_app
from dynashard_serving.api.settings import Settings
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of
from dynashard_serving.reshard.settings import Settings as ReshardSettings
from tests.api_caller import TENANT, Answer, Caller
from tests.engine.api.api_on_engine import KEYS
from tests.engine.topology.topology_world import Clock, topology_table_on
from tests.roles import as_function

TIMING = Timing(lease=30.0, operation=10.0, skew=1.0)
OPERATIONS = ("PutItem", "TransactWriteItems", "Query", "GetItem")
HOT = "TableWriteKeyRangeThroughputExceeded"
REGISTRY = Registry()


class Meter(
    Entity,
    name="grow.v1.Meter",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2, max=8),
    indexes=[Index("GSI2", "by_street", "{tenant_id}:{street}", "{id}", shards=Shards(2, max=8))],
    registry=REGISTRY,
):
    """An entity with calculated placement."""

    tenant_id: str
    id: str = new_id()
    street: str = "High Street"


class Reading(
    Entity,
    name="grow.v1.Reading",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(start=1, max=4, placement="random"),
    expires="until",
    registry=REGISTRY,
):
    """An entity with random placement whose items are only created, and expire."""

    tenant_id: str
    id: str = new_id()
    until: datetime | None = None


EXPOSED = (Exposed(Meter, path="meters"), Exposed(Reading, path="readings"))
ENTITIES = (Meter, Reading)


def partition(model: type[Entity]) -> Scope:
    """Return the scope of the callers' partition of an entity."""
    entity = definition(model)
    return Scope(entity, f"{entity.prefix}:{TENANT}")


def by_street() -> Scope:
    """Return the scope of the sharded index."""
    entity = definition(Meter)
    return Scope(entity, index=entity.indexes["by_street"])


@dataclass
class GrowthWorld:
    """Two tables and a clock, with APIs and resharders on them.

    While `reason` is set, every request for items is throttled with it; an empty one gives no reason. With
    `topology_down` the APIs do not reach the topology table.
    """

    inner: Transport
    table: str
    topology: str
    clock: Clock = field(default_factory=Clock)
    reason: str | None = None
    slot: str = ""
    topology_down: bool = False

    def __post_init__(self) -> None:
        plan = [Fault(each, self._strike(each), nth=None) for each in OPERATIONS]
        self.wire = FaultyTransport(self.inner, [*plan, Fault("BatchGetItem", self._read_topology, nth=None)])
        self.resharder = self.resharder_on(self.inner)

    def resharder_on(self, transport: Transport) -> Resharder:
        return Resharder(
            transport,
            table=self.table,
            topology_table=self.topology,
            entities=ENTITIES,
            timing=TIMING,
            # Few requests are executed here, and without them all are taken for creations.
            most_seconds=None,
            runtime=Runtime(self.clock, self.leap, lambda: 0.5),
        )

    def settings(self, **more: Any) -> Settings:
        """Return settings of the API."""
        values = {"environment": "local", "cursor_keys": KEYS, "idempotency_table": "unused", **more}
        return Settings(table=self.table, topology_table=self.topology, **values)

    def reshard_settings(self, **more: Any) -> ReshardSettings:
        """Return settings of the functions that change counts."""
        return ReshardSettings(table=self.table, topology_table=self.topology, environment="local", **more)

    def api(self, **more: Any) -> Caller:
        """Return a new API, like that of a new process."""
        app = build_app(
            self.settings(**more),
            as_function("api", self.wire, self.table, self.topology),
            domain=domain_of(*EXPOSED),
            runtime=Runtime(self.clock, random=lambda: 0.5),
        )
        return Caller(app)

    def throttle(self, caller: Caller, path: str, reason: str = HOT, slot: str = "") -> Answer:
        """Send a create that is throttled, and return its answer."""
        self.reason, self.slot = reason, slot
        try:
            return caller.post(f"/v1/{path}", {})
        finally:
            self.reason = None

    def throttle_twice(self, caller: Caller, path: str, reason: str = HOT, slot: str = "") -> list[Answer]:
        """Send two throttled creates, with the longest random wait between them."""
        first = self.throttle(caller, path, reason, slot)
        self.clock.now += 10
        return [first, self.throttle(caller, path, reason, slot)]

    def record(self, scope: Scope) -> Record | None:
        return TopologyTable(self.inner, self.topology).find(scope.key)

    def requests(self) -> dict[str, tuple[int | None, str]]:
        """Return the requested counts with their causes, by the keys of their records."""
        return {status.key: (status.target, status.cause or "") for status in self.resharder.busy()}

    def work(self) -> list[str]:
        """Let a worker carry out all requests, and return the errors that it logged."""
        logged: list[str] = []
        rounds = iter(range(5000))

        def stop() -> bool:
            assert next(rounds, None) is not None, f"not over: {self.resharder.busy()}"
            return self.resharder.poll() == []

        drive(self.resharder_on(self.inner), stop=stop, sleep=self.leap, log=logged.append)
        return logged

    def leap(self, seconds: float) -> None:
        """Return a sleep that advances the clock by ten times the pause, so that tests do not wait."""
        self.clock.now += 10 * seconds

    def topology_calls(self) -> list[str]:
        """Return the operations that the APIs called on the topology table, as IAM names them."""
        names = []
        for call in self.wire.calls:
            if self.topology in str(call.request):
                transact: list[Mapping[str, Any]] = call.request.get("TransactItems", [])
                names += [f"{next(iter(each))}Item" for each in transact] or [call.operation]
        return names

    def _read_topology(self, send: Send, request: Mapping[str, Any]) -> Wire:
        if self.topology_down and self.topology in str(request):
            raise EngineUnavailableError("The request was lost.", operation="BatchGetItem")
        return send(request)

    def _strike(self, operation: str) -> Any:
        def strike(send: Send, request: Mapping[str, Any]) -> Wire:
            if self.reason is None or self.table not in str(request):
                return send(request)
            resource = f"arn:aws:dynamodb:us-east-1:123456789012:table/t{self.slot and '/index/'}{self.slot}"
            return throttled(operation, reason=self.reason, resource=resource).strike(send, request)

        return strike


@contextmanager
def growth_world(transport: Transport, table: str) -> Iterator[GrowthWorld]:
    """Open a world on an empty table whose counts are one hour old."""
    with topology_table_on(transport) as topology:
        world = GrowthWorld(transport, table, topology)
        for path in ("meters", "readings"):
            # The first request of each entity stores its declared count.
            world.api().get(f"/v1/{path}")
        world.resharder.status(by_street())
        world.clock.now += 3600
        yield world
