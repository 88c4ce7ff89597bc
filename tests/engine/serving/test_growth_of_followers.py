"""Throttled stream consumers: their counts grow as those of callers do, and no change is lost."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.samples.pings import Ping
from domain.samples.plays import PLAYS, EpisodePlays
from dynashard import Dynashard, definition
from dynashard.growth.settings import Load
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.repository import RetryPolicy
from dynashard.resharding import Resharder
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, Send
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport, Wire
from dynashard.transport.classification import Refusal, classify
from dynashard_patterns.changes import DeadLetter, Dispatcher
from dynashard_serving.backend import open_entities
from dynashard_serving.changes.following import consumers
from dynashard_serving.domain import declared
from dynashard_serving.settings import TableSettings
from tests.domain_served import ENTITIES
from tests.engine.command_line import CURSOR_KEYS
from tests.engine.patterns.stream_world import Streamed, records_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.topology.topology_world import Clock, topology_table_on
from tests.roles import as_function

pytestmark = pytest.mark.engine

AT = datetime(2026, 11, 20, 20, 15, tzinfo=UTC)
EPISODE = {"tenant_id": "abc", "series": "dark", "episode": "e1"}
HOT = f"{definition(EpisodePlays).prefix}:abc:dark.e1"
"""The logical partition of the rows of a hot episode."""
NO_WAITING = RetryPolicy(runtime=Runtime(sleep=lambda _: None))


class Known:
    """Stands for CloudWatch, and says whether the table is below its limit."""

    def __init__(self, *, below: bool) -> None:
        self._below = below

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        assert (index, writing) == (None, True)
        return Load(self._below, "a test says so")

    def limit(self, *, index: str | None = None, writing: bool = True) -> None:
        assert (index, writing) == (None, True)

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        raise AssertionError((seconds, index))


class Followed:
    """A table with a ping in its stream, and stream consumers whose transactions are throttled while `hot`."""

    def __init__(self, transport: Transport, stream: Callable[[str], Any], table: str, topology: str) -> None:
        self.clock, self.hot = Clock(), True
        self.inner, self.table, self.topology = transport, table, topology
        self.wire = FaultyTransport(transport, [Fault("TransactWriteItems", self._strike, nth=None)])
        self.reports: list[Report] = []
        self.letters: list[DeadLetter] = []
        shard = stream(table)
        ping = Ping(**EPISODE, at=AT, id="p1", session_id="s", seconds=40)
        db = Dynashard(
            transport,
            table=table,
            topology=DeclaredTopology(),
            cursor_keys=CURSOR_KEYS,
            runtime=Runtime(AT.timestamp),
        )
        db.collection(Ping).create(ping)
        self.records = records_of(shard)

    def follower(self, *, below: bool, mode: Any = "on") -> Dispatcher:
        """Return the stream consumers of a new process."""
        settings = TableSettings(table=self.table, topology_table=self.topology, environment="local", growth_mode=mode)
        db = open_entities(
            settings,
            as_function("changes", self.wire, self.table, self.topology),
            [each.entity for each in ENTITIES],
            self,
            runtime=Runtime(self.clock, random=lambda: 0.5),
            retry_policy=NO_WAITING,
            open_load=lambda *_: Known(below=below),
        )
        return Dispatcher(
            consumers(db, declared().declarations, lambda events: pytest.fail(str(events))), keep=self.letters.append
        )

    def grew(self, report: Report, /) -> None:
        self.reports.append(report)

    def growth_failed(self, error: Exception, /) -> None:
        raise error

    def requests(self) -> dict[str, tuple[int | None, str | None]]:
        """Return the requested counts with their causes."""
        resharder = Resharder(
            self.inner,
            table=self.table,
            topology_table=self.topology,
            entities=[EpisodePlays],
            runtime=Runtime(self.clock),
        )
        return {status.key: (status.target, status.cause) for status in resharder.busy()}

    def asked_of_topology(self) -> set[str]:
        """Return the operations that were called on the topology table, as IAM names them."""
        names: set[str] = set()
        for call in self.wire.calls:
            if self.topology in str(call.request):
                steps: list[Mapping[str, Any]] = call.request.get("TransactItems", [])
                names |= {f"{next(iter(each))}Item" for each in steps} or {call.operation}
        return names

    def counted(self) -> list[tuple[int, int]]:
        db = Dynashard(self.inner, table=self.table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
        rows = PLAYS.read(db, EPISODE, level="minute", start=AT, end=AT.replace(minute=16), consistent=True)
        return [(row.pings, row.seconds) for row in rows]

    def _strike(self, send: Send, request: Mapping[str, Any]) -> Wire:
        steps = map(str, request["TransactItems"])
        throttled = [HOT in step and self.table in step for step in steps]
        if not self.hot or not any(throttled):
            return send(request)
        codes = [{"Code": "ThrottlingError" if each else "None"} for each in throttled]
        raise classify(
            Refusal(
                operation="TransactWriteItems",
                status=400,
                code="TransactionCanceledException",
                message="",
                body={"CancellationReasons": codes},
                attempts=4,
            )
        )


@pytest.fixture
def followed(wire: Transport, table: str, engine_url: str, dynamodb: RawDynamoDB) -> Iterator[Followed]:
    with topology_table_on(wire) as topology:
        followed = Followed(wire, Streamed(engine_url, dynamodb).on, table, topology)
        # The first request of each entity stores its declared count, one hour ago.
        followed.follower(below=True, mode="off").dispatch(followed.records)
        followed.clock.now += 3600
        followed.wire.calls.clear()
        yield followed


def test_rows_of_a_hot_episode_get_more_shards_and_lose_no_ping(followed: Followed) -> None:
    follower = followed.follower(below=True)

    first = follower.dispatch(followed.records)
    requested_after_one = followed.requests()
    followed.clock.now += 10
    second = follower.dispatch(followed.records)
    requested_after_two = followed.requests()
    followed.hot = False
    third = follower.dispatch(followed.records)

    assert requested_after_one == {}
    assert requested_after_two == {HOT: (2, "throttle")}
    assert [each.event for each in followed.reports] == [GrowthEvent.ASKED]
    assert first.again == second.again == followed.records[0]["dynamodb"]["SequenceNumber"]
    assert (third.again, followed.letters, followed.counted()) == (None, [], [(1, 40)])
    # The role of the stack allows these.
    assert followed.asked_of_topology() <= {"BatchGetItem", "GetItem", "PutItem"}


@pytest.mark.parametrize(
    ("below", "mode", "events"),
    [(False, "on", [GrowthEvent.LIMIT]), (True, "dry_run", [GrowthEvent.WOULD_ASK]), (True, "off", [])],
)
def test_no_count_changes_at_a_limit_of_the_table_in_a_dry_run_or_switched_off(
    followed: Followed,
    below: bool,  # noqa: FBT001 - a case
    mode: str,
    events: list[GrowthEvent],
) -> None:
    follower = followed.follower(below=below, mode=mode)

    for _ in range(2):
        assert follower.dispatch(followed.records).again is not None
        followed.clock.now += 10

    assert followed.requests() == {}
    assert [each.event for each in followed.reports] == events
