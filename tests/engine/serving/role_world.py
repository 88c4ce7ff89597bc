"""The functions that serve items, on the rights of their roles: requests that together need every grant of a role."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from msgspec import structs

from domain.samples.pings import Ping
from domain.samples.users import User
from dynashard import Dynashard, Entity, Key, Registry, Shards, definition
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, Send, throttled, unprocessed
from dynashard.topology import DeclaredTopology, Phase, family_of
from dynashard.topology.records import first_record
from dynashard.transport import Transport, Wire
from dynashard_local.workers.stream import Stream
from dynashard_patterns.changes import Dispatcher
from dynashard_serving.api.app import build_app
from dynashard_serving.api.queue_sender import QueueSender
from dynashard_serving.api.settings import Settings
from dynashard_serving.backend import open_entities
from dynashard_serving.changes.dead_letters import to_queue
from dynashard_serving.changes.following import consumers
from dynashard_serving.commands.handler import build_commands, logger
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import declared
from dynashard_serving.events.publishing import to_bus
from dynashard_serving.operations.served import Served, served_by_name
from dynashard_serving.queue_messages import creates_body
from dynashard_serving.telemetry.powertools import GrowthLog
from dynashard_serving.writer.operations import Operations
from dynashard_serving.writer.queues import Queues
from dynashard_serving.writer.writer import Writer
from tests.api_caller import Caller, a_user
from tests.domain_served import ENTITIES
from tests.engine.commands.commands_on_engine import Service
from tests.engine.patterns.stream_world import records_of
from tests.engine.topology.topology_world import Clock, put_by_hand
from tests.roles import Grant, Role, RoleClient, RoleTransport


class Badge(
    Entity,
    name="badge.v1.Badge",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2),
    unique=("code",),
    registry=Registry(),
):
    """An entity with a unique field, so that what is stored late moves only if its value is reserved for it."""

    tenant_id: str
    id: str
    code: str


QUEUES = {"Intake": "IntakeDeadLetters", "Operations": "OperationsDeadLetters"}
LATER = {"prefer": "respond-async"}
PLENTY_MILLISECONDS = 20_000


class AwsServices:
    """Stands for the clients of other AWS services. CloudWatch knows of a throttle at a low load."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.messages: list[tuple[str, Mapping[str, Any]]] = []
        self.published: list[Mapping[str, Any]] = []

    def send_message_batch(self, **request: Any) -> Mapping[str, Any]:
        self.messages += [(request["QueueUrl"], entry) for entry in request["Entries"]]
        return {}

    def send_message(self, **request: Any) -> None:
        self.messages.append((request["QueueUrl"], request))

    def change_message_visibility_batch(self, **request: Any) -> None:
        assert request["Entries"]

    def put_events(self, **request: Any) -> Mapping[str, Any]:
        self.published += request["Entries"]
        return {"Entries": [{"EventId": "1"} for _ in request["Entries"]]}

    def get_secret_value(self, **request: Any) -> Mapping[str, str]:
        assert request["SecretId"] == "CursorKeys"
        return {"SecretString": json.dumps({"current": "a key that signs cursors", "previous": []})}

    def get_metric_data(self, **request: Any) -> Mapping[str, Any]:
        minute = datetime.fromtimestamp(self._clock.now, UTC)
        known = ("ConsumedWriteCapacityUnits", "WriteThrottleEvents")
        return {
            "MetricDataResults": [
                {
                    "Id": query["Id"],
                    "Timestamps": [minute],
                    "Values": [60.0 if query["MetricStat"]["Metric"]["MetricName"] in known else 0.0],
                    "StatusCode": "Complete",
                }
                for query in request["MetricDataQueries"]
                if not query["MetricStat"]["Metric"]["MetricName"].startswith("Provisioned")
            ]
        }


@dataclass
class RoleWorld:
    """Empty tables, and the functions on them. What the function of a test sends is held against its role.

    Attributes:
        throttling: whether puts of items are throttled, without a reason.
        incomplete: whether DynamoDB leaves one key of each read of the topology unprocessed.
        used: the grants that were needed.
    """

    inner: Transport
    tables: Mapping[str, str]
    role: Role
    stream: Stream
    clock: Clock = field(default_factory=Clock)
    throttling: bool = False
    incomplete: bool = False
    used: set[Grant] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.services = AwsServices(self.clock)
        self.names = {logical: name for name, logical in self.tables.items()}
        plan = [Fault("PutItem", self._put, nth=None), Fault("BatchGetItem", self._read, nth=None)]
        plan.append(Fault("TransactWriteItems", self._put, nth=None))
        self.wire = RoleTransport(FaultyTransport(self.inner, plan), self.role, self.tables, self.used)

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.clock, sleep=lambda _: None, random=lambda: 0.5)

    def client(self, service: str, **_options: Any) -> RoleClient:
        """Return what stands for a botocore client of another service."""
        return RoleClient(self.services, service, self.role, self.used)

    def settings(self) -> Settings:
        return Settings(
            table=self.names["Table"],
            topology_table=self.names["Topology"],
            idempotency_table=self.names["Idempotency"],
            environment="dev",
            cursor_secret_arn="CursorKeys",  # noqa: S106 - its name
            queue_url="Intake",
            operations_queue_url="Operations",
        )

    def caller(self) -> Caller:
        """Return a caller of the API on the rights of the role."""
        return Caller(build_app(self.settings(), self.wire, runtime=self.runtime))

    def someone(self) -> Caller:
        """Return a caller of the API whose requests are not held against the role."""
        sender = QueueSender(lambda: self.services)
        return Caller(build_app(self.settings(), self.inner, runtime=self.runtime, sender=sender))

    def service(self) -> Service:
        """Return a service that invokes the function, on the rights of the role."""
        return Service(build_commands(self.settings(), self.wire, runtime=self.runtime))

    def database(self) -> Any:
        settings, entities = self.settings(), [each.entity for each in ENTITIES]
        return open_entities(settings, self.wire, entities, GrowthLog(logger, settings), runtime=self.runtime)

    def settle(self, model: type[Entity]) -> None:
        """Bring the count of an entity into the phase SETTLE of a change, for views that are taken from now on."""
        entity = definition(model)
        assert entity.shards is not None
        count = entity.shards.count
        self.clock.now += 3600
        first = first_record(family_of(entity), count, now=self.clock.now, lease=30.0)
        put_by_hand(
            self.inner,
            self.names["Topology"],
            structs.replace(first, phase=Phase.SETTLE, target=2 * count, swept=False),
        )

    def drain(self) -> None:
        """Hand all messages to a new writer, and keep those that it leaves."""
        writer = Writer(
            collection_of=(database := self.database()).collection,
            operate=Operations(database, self.clock).operate,
            queues=Queues(lambda: self.client("sqs"), {name: name for name in QUEUES}, QUEUES),
            log=lambda *_: None,
            clock=self.clock,
            workers=1,
            entities=served_by_name([*declared().entities, Exposed(Badge, "badges")]),
        )
        sent, self.services.messages = self.services.messages, []
        records = [
            {
                "messageId": str(number),
                "receiptHandle": str(number),
                "body": entry["MessageBody"],
                "eventSourceARN": f"arn:aws:sqs:us-east-1:111122223333:{queue}",
                "attributes": {"ApproximateReceiveCount": "1", "MessageGroupId": entry.get("MessageGroupId")},
            }
            for number, (queue, entry) in enumerate(sent)
            if queue in QUEUES
        ]
        left, _ = writer.work(map(SQSRecord, records), lambda: PLENTY_MILLISECONDS)
        self.services.messages += [sent[int(each)] for each in left]

    def store_queued(self) -> None:
        """Store the items of all messages."""
        sent, self.services.messages = self.services.messages, []
        db = Dynashard(self.inner, table=self.names["Table"], topology=DeclaredTopology(), cursor_keys=["unused" * 4])
        for _, entry in sent:
            for document in json.loads(entry["MessageBody"])["items"]:
                db.collection(Ping).create(Ping(**document))

    def store_late(self, *names: str) -> None:
        """Create badges in the shards that they had before a resize, and send them to the writer too."""
        db = Dynashard(self.inner, table=self.names["Table"], topology=DeclaredTopology(), cursor_keys=["unused" * 4])
        badges = [Badge(tenant_id="abc", id=name, code=name) for name in names]
        for badge in badges:
            db.collection(Badge).create(badge)
        items = [badge.model_dump() for badge in badges]
        body = creates_body(Served(Exposed(Badge, "badges")), "abc", items, self.clock.now)
        self.services.messages.append(("Intake", {"Id": "1", "MessageBody": body.decode()}))

    def throttles(self) -> Iterator[None]:
        """Throttle puts in each round of a loop, so often that the growth policy acts."""
        self.clock.now += 3600
        self.throttling = True
        for _ in range(3):
            yield
            self.clock.now += 10
        self.throttling = False

    def leave_topology_unread(self) -> None:
        """Have views end, and reads of the topology be incomplete."""
        self.clock.now += 3600
        self.incomplete = True

    def halve_edges(self) -> None:
        """Delete one of the two items of each edge, as a fault of the past could have done."""
        for item in self.inner.call("Scan", {"TableName": self.names["Table"]})["Items"]:
            if item["PK"]["S"].startswith("follow.v1.Follow:") and "FANNED_BY" in item["PK"]["S"] + item["SK"]["S"]:
                key = {name: item[name] for name in ("PK", "SK")}
                self.inner.call("DeleteItem", {"TableName": self.names["Table"], "Key": key})

    def time(self, seconds: float = 0) -> str:
        """Return the time so many seconds from now."""
        return datetime.fromtimestamp(self.clock.now + seconds, UTC).isoformat()

    def _put(self, send: Send, request: Mapping[str, Any]) -> Wire:
        if self.throttling and self.names["Table"] in str(request):
            return throttled("PutItem", reason="").strike(send, request)
        return send(request)

    def _read(self, send: Send, request: Mapping[str, Any]) -> Wire:
        if self.incomplete and self.names["Topology"] in request["RequestItems"]:
            return unprocessed("BatchGetItem", keep=1).strike(send, request)
        return send(request)


def serve_over_rest(world: RoleWorld) -> None:
    """Send requests to the API that together need all of its role."""
    caller = world.caller()
    key, again, past = {"idempotency-key": "k-1"}, {"idempotency-key": "k-2"}, world.time(-60)
    assert caller.post("/v1/users", a_user(id="1"), headers=key).status == 201
    assert caller.post("/v1/users", a_user(expires_at=past), headers=again).status == 422
    assert caller.delete("/v1/users/1").status == 204
    # An item with attachments is created in steps.
    incidents = [
        caller.post("/v1/incidents", {**INCIDENT, "number": number}, headers={"idempotency-key": key})
        for key, number in (("k-3", 1), ("k-4", 2))
    ]
    assert [answer.status for answer in incidents] == [201, 409]
    for status in (201, 200):
        assert caller.post("/v1/follows", FOLLOW).status == status
        world.halve_edges()
    for query in ("index=by_email", "index=by_department&department=d", "index=by_manager&manager_id=m"):
        assert caller.get("/v1/users", query=query).status == 200
    assert caller.post("/v1/follows", {**FOLLOW, "other": "Actor.2"}).status == 201
    assert caller.get("/v1/follows", query="of=User.1&limit=1").json["cursor"] is not None
    assert caller.post("/v1/pings", ping(world)).status == 202
    assert caller.put("/v1/users/later", a_user(), headers=LATER).status == 202
    for _ in world.throttles():
        assert caller.put("/v1/users/1", a_user()).status == 429
    world.leave_topology_unread()
    assert caller.get("/v1/users/1").status == 404


def serve_directly(world: RoleWorld) -> None:
    """Invoke the function for direct invocation with requests that together need all of its role."""
    service = world.service()
    service.result("create", item=a_user(id="1"), idempotency_key="k-1")
    service.error("create", item=a_user(expires_at=world.time(-60)), idempotency_key="k-2")
    service.result("batch_write", put=[a_user(id="3"), a_user(id="4")])
    service.result("delete", key={"id": "1"})
    service.result("create", entity="incidents", item=INCIDENT, idempotency_key="k-3")
    service.error("create", entity="incidents", item={**INCIDENT, "number": 2}, idempotency_key="k-4")
    for _ in range(2):
        service.result("create", entity="follows", item=FOLLOW)
        world.halve_edges()
    service.result("list", limit=1)
    service.result("list", index="by_email")
    service.result("list", index="by_department", partition={"department": "d"})
    service.result("list", index="by_manager", partition={"manager_id": "m"})
    for _ in world.throttles():
        service.error("put", item=a_user(id="1"))
    world.leave_topology_unread()
    service.error("get", key={"id": "1"})


def do_what_is_queued(world: RoleWorld) -> None:
    """Hand messages to the writer that together need all of its role."""
    caller = world.someone()
    assert caller.post("/v1/pings", ping(world)).status == 202
    assert caller.put("/v1/users/1", a_user(), headers=LATER).status == 202
    world.drain()
    world.settle(User)
    assert caller.put("/v1/users/2", a_user(), headers=LATER).status == 202
    assert caller.delete("/v1/users/1", headers=LATER).status == 202
    world.drain()
    world.settle(Badge)
    world.store_late(*"abcdef")
    world.drain()
    assert world.services.messages == []
    world.services.messages += [(queue, {"Id": "1", "MessageBody": "unreadable"}) for queue in QUEUES]
    world.drain()
    for _ in world.throttles():
        assert caller.post("/v1/pings", ping(world, id=f"{world.clock.now:.0f}")).status == 202
        assert caller.put("/v1/users/3", a_user(), headers=LATER).status == 202
        world.drain()
    world.leave_topology_unread()
    world.drain()


def follow_changes(world: RoleWorld) -> None:
    """Hand records of the stream to the consumers that together need all of their role."""
    database, stream = world.database(), world.stream
    publish = to_bus("Bus", "dynashard", lambda: world.client("events"))
    follower = Dispatcher(consumers(database, declared().declarations, publish), keep=to_queue("Dead"))
    items = world.someone()

    def follow() -> bool:
        return follower.dispatch(records_of(stream)).again is None

    items.post("/v1/incidents", INCIDENT)
    items.post("/v1/pings", ping(world))
    world.store_queued()
    assert follow()
    assert world.services.published
    items.delete("/v1/incidents/i-1")
    items.post("/v1/pings", ping(world, id="q"))
    world.store_queued()
    assert follow()
    unreadable = {"SequenceNumber": "1", "Keys": {}, "NewImage": {"Type": {"S": "ping.v1.Ping"}}}
    follower.dispatch([{"eventName": "INSERT", "dynamodb": unreadable}])
    items.post("/v1/incidents", {**INCIDENT, "id": "i-2", "number": 2})
    for _ in world.throttles():
        assert not follow()
    world.leave_topology_unread()
    assert follow()


INCIDENT = {"id": "i-1", "number": 1, "title": "Errors", "details": {"host": "a"}, "participants": ["user_ada"]}
FOLLOW = {"node": "User.1", "other": "Actor.1"}


def ping(world: RoleWorld, **fields: Any) -> dict[str, Any]:
    return {"series": "s", "episode": "e", "at": world.time(), "id": "p", "session_id": "s", **fields}
