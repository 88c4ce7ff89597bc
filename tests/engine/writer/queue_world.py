"""The API, the queues and the writer on the engine, with time and faults that the test controls."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent

from domain.samples.pings import Ping
from dynashard import Collection, Dynashard
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport
from dynashard.transport import Transport
from dynashard.transport.clock_offset import clock_offset_of
from dynashard_local.queues.server import QueueCalls
from dynashard_local.queues.store import NewMessage, QueueSpec, QueueStore
from dynashard_local.workers.queue_worker import poll
from dynashard_serving.api.app import build_app
from dynashard_serving.api.queue_sender import QueueSender
from dynashard_serving.backend import open_entities
from dynashard_serving.domain import Domain, declared
from dynashard_serving.operation_records import Operation
from dynashard_serving.operations.served import Served, served_by_name
from dynashard_serving.settings import TableSettings
from dynashard_serving.writer.operations import Operations
from dynashard_serving.writer.outcomes import Tally  # noqa: TC001 - as its neighbours
from dynashard_serving.writer.queues import Queues
from dynashard_serving.writer.writer import Writer
from tests.api_caller import TENANT, Caller
from tests.domain_served import ENTITIES
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.topology.topology_world import Clock
from tests.roles import as_function

INTAKE, OPERATIONS = "intake", "operations"
DEAD = {INTAKE: "intake-dead", OPERATIONS: "operations-dead"}
HIDDEN_SECONDS, MOST_RECEIVES = 60.0, 50


class KilledError(BaseException):
    """The writer's process was killed."""


class Sqs:
    """A client of the local queues without HTTP. `refusing` makes its next calls fail in part."""

    def __init__(self, store: QueueStore) -> None:
        self._calls = QueueCalls(store)
        self.sent: list[Mapping[str, Any]] = []
        self.refusing: list[Sequence[str]] = []

    def send_message_batch(self, **request: Any) -> Mapping[str, Any]:
        self.sent.append(request)
        refused = self.refusing.pop(0) if self.refusing else ()
        taken = [entry for entry in request["Entries"] if entry["Id"] not in refused]
        if taken:
            self._calls.answer("SendMessageBatch", {**request, "Entries": taken})
        failed = [{"Id": each, "Code": "InternalError"} for each in refused]
        return {"Successful": [{"Id": entry["Id"]} for entry in taken], "Failed": failed}

    def send_message(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("SendMessage", request)

    def change_message_visibility_batch(self, **request: Any) -> Mapping[str, Any]:
        return self._calls.answer("ChangeMessageVisibilityBatch", request)


class QueueWorld:
    """A backend with its own queues.

    Args:
        transport: the way to the engine.
        table: an empty table.
        folder: for the queues.
        domain: what is served, by default the sample domain.
    """

    def __init__(self, transport: Transport, table: str, folder: Path, domain: Domain | None = None) -> None:
        self.domain = domain or declared()
        self.clock = Clock(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp())
        self.transport = FaultyTransport(transport)
        self.table = table
        self.idempotency = "unused"
        specs = [QueueSpec(name, HIDDEN_SECONDS, MOST_RECEIVES, dead) for name, dead in DEAD.items()]
        self.store = QueueStore(folder / "queues", [*specs, *map(QueueSpec, DEAD.values())], self.clock)
        self.sqs = Sqs(self.store)
        self.writer_off = 0.0
        """By how many seconds the writer's clock is ahead; below 0 it is behind."""
        self.writer_wire: Transport | None = None
        """The writer's way to the engine; None is that of all others."""
        self.tallies: list[Tally] = []
        self.logged: list[tuple[str, Mapping[str, Any]]] = []
        self.recorded: list[Mapping[str, Any]] = []
        """What the writer's log says of each piece of work."""

    @cached_property
    def caller(self) -> Caller:
        """A caller of the API."""
        settings = settings_of(self.table, self.idempotency, queue_url=INTAKE, operations_queue_url=OPERATIONS)
        allowed = as_function("api", self.transport, self.table, TOPOLOGY, self.idempotency)
        sender = QueueSender(lambda: self.sqs)
        app = build_app(settings, allowed, domain=self.domain, runtime=Runtime(self.clock), sender=sender)
        return Caller(app)

    def database(self, faults: Sequence[Fault] = ()) -> Dynashard:
        return self._database_on(FaultyTransport(self.transport.inner, faults))

    def _database_on(self, transport: Transport, clock: Callable[[], float] | None = None) -> Dynashard:
        settings = TableSettings(table=self.table, topology_table=TOPOLOGY, environment="local", growth_mode="off")
        entities = [each.entity for each in ENTITIES]
        return open_entities(settings, transport, entities, _Nobody(), runtime=Runtime(clock or self.clock))

    def writer(self, faults: Sequence[Fault] = ()) -> Writer:
        """Return the writer of a new process whose requests meet these faults, with the rights of its role."""
        faulty = _Clocked(self.writer_wire or self.transport.inner, faults)

        def clock() -> float:
            return self.clock() + self.writer_off

        database = self._database_on(as_function("writer", faulty, self.table, TOPOLOGY), clock)
        return Writer(
            collection_of=database.collection,
            operate=Operations(database, clock).operate,
            queues=Queues(lambda: self.sqs, {name: name for name in DEAD}, DEAD),
            log=lambda event, fields: self.logged.append((event, fields)),
            clock=clock,
            record=self.recorded.append,
            workers=1,
            random=lambda: 0.5,
            entities=self._served,
        )

    @cached_property
    def _served(self) -> Mapping[str, Served]:
        """What is served, which takes longer to find than most work of a writer."""
        return served_by_name(self.domain.entities)

    def poll(self, queue: str, faults: Sequence[Fault] = ()) -> int:
        """Handle one batch, and return its number of messages."""

        def handle(event: Mapping[str, Any], context: Any) -> Mapping[str, Any]:
            writer = self.writer(faults)
            left, tally = writer.work(SQSEvent(dict(event)).records, context.get_remaining_time_in_millis)
            self.tallies.append(tally)
            return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}

        return poll(self.store, queue, handle, self.clock)

    def drain(self, queue: str = INTAKE) -> None:
        """Handle batches until no message is visible."""
        while self.poll(queue):
            pass

    def later(self, seconds: float = HIDDEN_SECONDS) -> None:
        """Advance the clock."""
        self.clock.now += seconds

    def send(self, queue: str, *bodies: str, group: str | None = None) -> None:
        """Send messages to a queue unchanged."""
        self.store.send(queue, [NewMessage(body, {}, group) for body in bodies])

    def dead_letters(self, queue: str = INTAKE) -> list[tuple[str, str]]:
        """Return the reasons and bodies of a queue's dead letters."""
        self.later()
        return [
            (each.attributes.get("reason", {}).get("StringValue", ""), each.body)
            for each in self.store.receive(DEAD[queue], 1000)
        ]

    @property
    def pings(self) -> Collection[Ping]:
        return self.database().collection(Ping)

    @property
    def operations(self) -> Collection[Operation]:
        return self.database().collection(Operation)

    def stored(self, series: str = "s", episode: str = "e") -> list[Ping]:
        """Return today's stored pings of an episode."""
        at = datetime.fromtimestamp(self.clock.now, UTC)
        partition = {"tenant_id": TENANT, "series": series, "episode": episode, "at": at}
        return sorted(self.pings.scan(partition, consistent=True), key=lambda ping: (ping.at, ping.id))

    def ping(self, number: int = 0, **fields: Any) -> dict[str, Any]:
        """Return the body of a ping."""
        at = datetime.fromtimestamp(self.clock.now, UTC) - timedelta(seconds=number)
        return {
            "series": "s",
            "episode": "e",
            "at": at.isoformat(),
            "id": f"p{number}",
            "session_id": "session",
            **fields,
        }


class _Clocked(FaultyTransport):
    """Learns how far the clock is off, as the transport below does."""

    def __init__(self, inner: Transport, faults: Sequence[Fault]) -> None:
        super().__init__(inner, faults)
        self.clock_offset = clock_offset_of(inner)


class _Nobody:
    def grew(self, report: object, /) -> None:
        raise AssertionError(report)

    def growth_failed(self, error: Exception, /) -> None:
        raise error
