"""The synthesised tables in the real engine, the synthesised machine over the real steps, and faults between them."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

from botocore.config import Config
from botocore.session import get_session

from dynashard import Dynashard, Entity, Key, LeasedTopology, Registry, Shards
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault as EngineFault
from dynashard.testing.faults import FaultyTransport
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_local.engine.tables import TablePlan, engine_client, ensure_tables, table_plans
from dynashard_local.template import read
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of
from dynashard_serving.reshard.backend import resharder_of, scope_of
from dynashard_serving.reshard.dispatch import Dispatcher
from dynashard_serving.reshard.executions import Executions
from dynashard_serving.reshard.operations import Operator
from dynashard_serving.reshard.settings import Settings
from dynashard_serving.reshard.shrink import shrink
from dynashard_serving.reshard.steps import EVENTS, Steps
from dynashard_serving.reshard.stream_age import Clients, StreamAge
from dynashard_serving.reshard.watch import Seen, Watch
from dynashard_serving.table_load import TableLoad
from tests.direct_transport import direct_transport
from tests.infra.prewarm_world import definition_in
from tests.infra.reshard_aws import (
    CalmMetrics,
    FunctionTransport,
    KilledError,
    Mappings,
    OpenShards,
    StepFunctions,
    passes,
)
from tests.infra.states_language import Clock, Execution, Machine, TaskFailedError
from tests.infra.templates import Templates, of_type
from tests.roles import Role, RoleClient

START = 1_800_000_000.0
SETTINGS = {"topology_lease_seconds": 30.0, "topology_operation_seconds": 29.0, "topology_skew_seconds": 1.0}
WAIT = 60
CONTINUE = "arn:<AWS::Partition>:states:::states:startExecution"
FUNCTIONS = ("Advance", "Work", "Stop")
ROLES = (*FUNCTIONS, "Operator", "Watch", "Dispatch")
"""The functions. All but the dispatcher reach the tables."""


class Parcel(Entity, name="parcel.v1.Parcel", key=Key("{tenant}", "{id}"), shards=Shards(2), registry=Registry()):
    """An entity whose items move."""

    tenant: str
    id: str
    weight: int = 0


class Note(
    Entity,
    name="note.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=4, placement="random"),
    registry=Registry(),
):
    """An entity whose items stay where chance put them."""

    tenant: str
    id: str


class Locker(
    Entity,
    name="locker.v1.Locker",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    unique=("owner",),
    registry=Registry(),
):
    """An entity with a unique field, so that what is stored late moves only if its value is reserved for it."""

    tenant: str
    id: str
    owner: str


PATHS = ((Parcel, "parcels"), (Note, "notes"), (Locker, "lockers"))
DOMAIN = domain_of(*(Exposed(model, path=path, operations=()) for model, path in PATHS))
ASKED = {"entity": "parcels", "partition": {"tenant": "abc"}}
IDS = [f"{number:03}" for number in range(12)]
"""Of the parcels that tests begin with."""


@dataclass(frozen=True)
class Fault:
    """A fault of one call of a function.

    Attributes:
        entry: the function.
        nth: which of its calls, from 1; None for each.
        after: how many requests it still sends before it is killed; None lets it end, and loses its answer.
    """

    entry: str
    nth: int | None
    after: int | None


class World:
    """The resources of a resize, with simulated time.

    Args:
        dev: the templates.
        endpoint: of the engine.
        events: after how many events an execution is followed by a new one.
    """

    def __init__(self, dev: Templates, endpoint: str, events: int = EVENTS) -> None:
        self.clock = Clock(START)
        self.templates = dev
        inner, self._engine, self._streams = _clients(endpoint)
        self.wire = FunctionTransport(inner, {name: Role.of(dev["Reshard"], f"{name}Role") for name in ROLES})
        self.table, self.topology_table = self._tables("Table", "Topology")
        self.wire.tables = {self.table: "Table", self.topology_table: "Topology"}
        self.settings = Settings(table=self.table, topology_table=self.topology_table, **SETTINGS)  # type: ignore[arg-type]
        self.stepfunctions = StepFunctions()
        self.calls: list[str] = []
        self.faults: list[Fault] = []
        self.meanwhile: Callable[[str], None] = lambda _entry: None
        self.log: list[str] = []
        self._events = events
        self._next: dict[str, str] = {}

    def operate(self, operation: str, **asked: Any) -> dict[str, Any]:
        """Invoke the operator's function, and return the result or the error of its answer."""
        errors: list[Exception] = []
        operator = Operator(self._resharder(), errors.append, domain=DOMAIN)
        with self.wire.acting_as("Operator"):
            answer = operator.answer({"operation": operation, **asked})
        assert errors == []
        return dict(json.loads(json.dumps(answer)))

    def start(self, to: int, **asked: Any) -> dict[str, Any]:
        answer = self.operate("reshard.start", to=to, **{**ASKED, **asked})
        assert answer["ok"], answer
        return dict(answer["result"])

    def status(self) -> dict[str, Any]:
        return dict(self.operate("reshard.status", **ASKED)["result"])

    def executions(self, who: str) -> Executions:
        """Return the executions as a function may start and list them."""
        used = self.wire.used.setdefault(who, set())
        return Executions(RoleClient(self.stepfunctions, "states", self.wire.roles[who], used), "Machine")

    def deliver(self) -> list[str]:
        """Pass new records of the stream to the dispatcher as the event source mapping does, and return its log."""
        self.log.clear()
        records = self._new_records()
        chosen = [record for record in records if any(passes(record, pattern) for pattern in self.patterns)]
        executions = self.executions("Dispatch")
        while chosen:
            failed = Dispatcher(executions.start, self.log.append).dispatch({"Records": chosen})["batchItemFailures"]
            again = failed[0]["itemIdentifier"] if failed else None
            numbers = [record["dynamodb"]["SequenceNumber"] for record in chosen]
            chosen = chosen[numbers.index(again) :] if again else []
        return list(self.log)

    def lose(self) -> None:
        """Lose the new records of the stream."""
        self._new_records()

    def look(self) -> list[Seen]:
        """Run the watch, and return what it has seen."""
        seen: list[Seen] = []
        with self.wire.acting_as("Watch"):
            Watch(self._resharder(), self.executions("Watch"), self.clock, seen.append, self.log.append).look()
        return seen

    def stream_age(self, mappings: Mappings, metrics: Any, *, closed: bool = False) -> StreamAge:
        """Return what the watch measures the stream of items with, within its role.

        The engine shows the last number of a shard that is open, as DynamoDB does only of `closed` ones.
        """
        role, used = self.wire.roles["Watch"], self.wire.used.setdefault("Watch", set())
        stream = self._engine.describe_table(TableName=self.table)["Table"]["LatestStreamArn"]
        # Lambda itself takes these actions with the roles of consumers, so they are not counted as used.
        (named,) = {name for name, action in role.all if action == "dynamodb:GetRecords"}
        clients = Clients(
            RoleClient(mappings, "lambda", role, used),
            RoleClient(metrics, "cloudwatch", role, used),
            RoleClient(self._streams if closed else OpenShards(self._streams), "dynamodb", role, set(), {"*": named}),
        )
        return StreamAge(clients, stream, "Table", self.clock, self.log.append)

    def run(self) -> list[Execution]:
        """Run all started executions, and their successors, to their ends."""
        machine = Machine(definition_in(self.templates["Reshard"]), self._invoke, self.clock, "machine")
        done: list[Execution] = []
        while self.stepfunctions.waiting:
            name = self.stepfunctions.waiting[0]
            done.append(machine.run(self.stepfunctions.started[name], name))
            self.stepfunctions.ended.add(name)
            self.deliver()
        return done

    @property
    def patterns(self) -> list[dict[str, Any]]:
        """The filters of the event source mapping, as synthesised."""
        (mapping,) = of_type(self.templates["Reshard"], "AWS::Lambda::EventSourceMapping").values()
        return [json.loads(each["Pattern"]) for each in mapping["Properties"]["FilterCriteria"]["Filters"]]

    def shrink(self) -> list[str]:
        """Run the watch for quiet counts, and return its lines. Nothing was throttled."""
        metrics = RoleClient(
            CalmMetrics(), "cloudwatch", self.wire.roles["Watch"], self.wire.used.setdefault("Watch", set())
        )
        load = TableLoad(self.wire, self.table, metrics=lambda: metrics, clock=self.clock)
        with self.wire.acting_as("Watch"):
            return shrink(self.settings, self._resharder(), log=self.log.append, load=load)

    def parcels(self) -> Any:
        """Return a client of parcels whose views are as old as a lease allows."""
        return self.collection(Parcel)

    def collection(self, model: type[Entity]) -> Any:
        """Return a client whose views are as old as a lease allows."""
        topology = LeasedTopology(
            self.wire, self.topology_table, lease=SETTINGS["topology_lease_seconds"], runtime=Runtime(self.clock)
        )
        opened = Dynashard(
            self.wire,
            table=self.table,
            cursor_keys=["0123456789abcdef"],
            topology=topology,
            runtime=Runtime(self.clock),
        )
        return opened.collection(model)

    def store_late(self, *names: str) -> None:
        """Create lockers in the shards that they had before a resize, as requests do that are executed late."""
        before = Dynashard(self.wire, table=self.table, topology=DeclaredTopology(), cursor_keys=["0123456789abcdef"])
        for name in names:
            before.collection(Locker).create(Locker(tenant="abc", id=name, owner=name))

    @contextmanager
    def struck(self, *faults: EngineFault) -> Iterator[None]:
        """Have requests of the block meet faults of the database."""
        inner = self.wire.inner
        self.wire.inner = FaultyTransport(inner, faults)
        yield
        self.wire.inner = inner

    def put_twice(self, name: str) -> None:
        """Store another item with a parcel's key at the home that it has under one shard."""
        (item,) = [each for each in self._engine.scan(TableName=self.table)["Items"] if each["SK"]["S"] == name]
        self._engine.put_item(TableName=self.table, Item={**item, "PK": {"S": "parcel.v1.Parcel:abc:0"}})

    def grow(self, partition: Mapping[str, Any], to: int) -> None:
        """Request a count as the growth policy does."""
        scope = scope_of("parcels", partition, domain=DOMAIN)
        self._resharder().start(scope, to, cause="throttle")

    def shards(self) -> Counter[str]:
        """Return the live items by stored partition key, and the relocation markers."""
        items = self._engine.scan(TableName=self.table, ConsistentRead=True)["Items"]
        return Counter("marks" if "MovedTo" in item else item["PK"]["S"] for item in items)

    def close(self) -> None:
        for table in (self.table, self.topology_table):
            self._engine.delete_table(TableName=table)

    def _tables(self, *wanted: str) -> list[str]:
        """Create the synthesised tables under new names, because a stream outlives its table."""
        plans = {plan.name.rpartition("-")[2]: plan for plan in table_plans(read(self.templates.folder))}
        own = [TablePlan({**plans[name].create, "TableName": f"{uuid4().hex}-{name}"}) for name in wanted]
        ensure_tables(self._engine, own, data="memory")
        return [plan.name for plan in own]

    def _invoke(self, resource: str, payload: Mapping[str, Any], seconds: float) -> Any:
        if resource == CONTINUE:
            assert payload["StateMachineArn"] == "machine"
            self.stepfunctions.started.setdefault(payload["Name"], dict(payload["Input"]))
            return {}
        (entry,) = [name for name in FUNCTIONS if resource.startswith(f"<{name}Live")]
        self.calls.append(entry)
        self.meanwhile(entry)
        count = self.calls.count(entry)
        fault = next((f for f in self.faults if f.entry == entry and f.nth in (None, count)), None)
        self.wire.requests_left = fault.after if fault else None
        try:
            with self.wire.acting_as(entry):
                result = self._call(entry, payload["input"])
        except KilledError:
            result = None
        finally:
            self.wire.requests_left = None
        if fault is not None:
            raise TaskFailedError("Lambda.Unknown", "injected")
        assert seconds > 0
        return json.loads(json.dumps(result))

    def _call(self, entry: str, data: Mapping[str, Any]) -> Any:
        steps = Steps(self._resharder(), slice_seconds=10, log=self.log.append, events=self._events)
        try:
            return {"Advance": steps.advance, "Work": steps.work, "Stop": steps.stop}[entry](data)
        except Exception as error:  # Lambda's runtime reports any exception by the name of its class
            cause = json.dumps({"errorMessage": str(error), "errorType": type(error).__name__})
            raise TaskFailedError(type(error).__name__, cause) from error

    def _resharder(self) -> Any:
        """Return a new resharder, because each call of a function runs in a process of its own."""
        return resharder_of(self.settings, self.wire, domain=DOMAIN, runtime=Runtime(self.clock, self._sleep))

    def _sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def _new_records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for shard, iterator in self._iterators().items():
            answer = self._streams.get_records(ShardIterator=iterator)
            while answer["Records"]:
                found += answer["Records"]
                answer = self._streams.get_records(ShardIterator=answer["NextShardIterator"])
            self._next[shard] = answer["NextShardIterator"]
        return found

    def _iterators(self) -> dict[str, str]:
        """Return where each shard of the topology's stream is read on."""
        if not self._next:
            stream = self._engine.describe_table(TableName=self.topology_table)["Table"]["LatestStreamArn"]
            for shard in self._streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"]:
                name = shard["ShardId"]
                self._next[name] = self._streams.get_shard_iterator(
                    StreamArn=stream, ShardId=name, ShardIteratorType="TRIM_HORIZON"
                )["ShardIterator"]
        return self._next


@contextmanager
def world(dev: Templates, endpoint: str, **options: Any) -> Iterator[World]:
    """Open a world with new tables, which are deleted afterwards."""
    made = World(dev, endpoint, **options)
    yield made
    made.close()


def fill(made: World) -> None:
    """Create the parcels of `IDS`."""
    collection = made.parcels()
    for name in IDS:
        collection.create(Parcel(tenant="abc", id=name))


@cache
def _clients(endpoint: str) -> tuple[Transport, Any, Any]:
    """Return a cached client of the engine, because reading a service's description takes longer than a resize."""
    streams = get_session().create_client(
        "dynamodbstreams",
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 -- the engine's
        # The engine's sequence numbers are shorter than DynamoDB's.
        config=Config(parameter_validation=False),
    )
    return direct_transport(endpoint), engine_client(endpoint), streams
