"""A throttle of the repository makes a count grow, which shrinks again after a quiet time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dynashard import definition
from dynashard.errors import KeyRangeThrottledError, TableThrottledError, ThrottleReason
from dynashard.growth.requests import growth_of, shrink_quiet
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.repository import Repository, Store
from dynashard.routing import Router
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.topology import LeasedTopology
from dynashard.transactions.single_writes import TransactedWrites
from dynashard.transport import Transport
from tests.engine.resharding.resharding_world import (
    Event,
    Member,
    Moving,
    Thing,
    index,
    moving_world,
    partition,
    whole,
)

pytestmark = pytest.mark.engine

DAY = 24 * 3600.0


@dataclass
class Growing:
    """A world whose clients report throttles to a growth policy."""

    world: Moving
    reports: list[Report] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.growth = growth_of(self.world.resharder, settings=GrowthSettings(), waits=True, report=self.reports.append)

    def items(self, model: type[Any], *, reason: str, slot: str = "") -> Repository[Any]:
        """Return a repository of an entity whose PutItems are throttled."""
        resource = f"arn:aws:dynamodb:us-east-1:123456789012:table/t{slot and '/index/'}{slot}"
        faulty = FaultyTransport(self.world.inner, [throttled("PutItem", reason=reason, resource=resource, nth=None)])
        topology = LeasedTopology(self.world.inner, self.world.topology, runtime=Runtime(self.world.clock))
        store = Store(
            faulty,
            self.world.table,
            Router(topology),
            TransactedWrites,
            Runtime(self.world.clock),
            throttled=self.growth.throttled,
        )
        return Repository(store, model)


@pytest.fixture
def growing(wire: Transport, table: str) -> Iterator[Growing]:
    with moving_world(wire, table) as made:
        made.of(Thing).find({"tenant": "abc", "id": "1"})
        made.of(Event).find({"tenant": "abc", "id": "1"})
        made.clock.now += 3600
        # What grows by itself may take its time here.
        made.resharder = made.new(most_seconds=10 * DAY)
        yield Growing(made)


HOT = "TableWriteKeyRangeThroughputExceeded"


@pytest.mark.parametrize(("model", "count"), [(Thing, 4), (Event, 2)], ids=["calculated", "random"])
def test_a_hot_partition_doubles_and_is_halved_after_a_quiet_time(
    growing: Growing, model: type[Any], count: int
) -> None:
    world, scope = growing.world, partition(model)
    items = growing.items(model, reason=HOT)

    for _ in range(3):
        with pytest.raises(KeyRangeThrottledError):
            items.create(model(tenant="abc", id="1"))
    status = world.finish(scope)

    assert (status.count, status.cause, [report.event for report in growing.reports]) == (
        count * 2,
        "throttle",
        [GrowthEvent.ASKED],
    )
    world.clock.now += DAY
    [shrunk] = shrink_quiet(world.resharder, settings=GrowthSettings())
    assert (shrunk.event, world.finish(scope).count) == (GrowthEvent.ASKED, count)
    world.clock.now += 10 * DAY
    assert shrink_quiet(world.resharder, settings=GrowthSettings()) == []


def test_a_hot_index_doubles_its_own_count_and_not_that_of_the_table(growing: Growing) -> None:
    items = growing.items(Thing, reason="IndexWriteKeyRangeThroughputExceeded", slot="GSI2")

    with pytest.raises(KeyRangeThrottledError):
        items.create(Thing(tenant="abc", id="1", colour="red"))
    status = growing.world.finish(index(Thing, "by_colour"))

    assert (status.count, growing.world.record("move.v1.Thing").count) == (4, 4)


def test_a_hot_partition_without_a_count_of_its_own_doubles_that_of_all(growing: Growing) -> None:
    growing.world.resize(whole(Thing), 8)
    growing.world.clock.now += 3600
    items = growing.items(Thing, reason=HOT)

    with pytest.raises(KeyRangeThrottledError):
        items.create(Thing(tenant="abc", id="1"))

    assert [report.target for report in growing.reports] == [16]
    assert growing.world.finish(partition(Thing)).count == 16


def test_an_index_without_a_record_has_its_declared_count_whatever_that_of_its_table_is(
    wire: Transport, table: str
) -> None:
    with moving_world(wire, table) as made:
        made.resize(whole(Thing), 16)
        growing = Growing(made)
        reason = ThrottleReason("IndexWriteKeyRangeThroughputExceeded", "arn:x:table/t/index/GSI2")

        growing.growth.throttled(
            definition(Thing), None, KeyRangeThrottledError("hot", operation="PutItem", reasons=[reason])
        )

    assert [(each.event, each.target) for each in growing.reports] == [(GrowthEvent.ASKED, 4)]


def test_a_partition_of_two_entities_is_halved_once(growing: Growing) -> None:
    world = growing.world
    world.of(Member).find({"team": "red", "id": "1"})
    world.resize(partition(Member, "red"), 4, cause="throttle")
    world.clock.now += DAY

    dry = shrink_quiet(world.resharder, settings=GrowthSettings("dry_run"))
    reports = shrink_quiet(world.resharder, settings=GrowthSettings())

    assert [(each.event, each.partition) for each in dry] == [(GrowthEvent.WOULD_ASK, "team:red")]
    assert [(each.event, each.partition) for each in reports] == [(GrowthEvent.ASKED, "team:red")]


def test_a_count_that_nobody_has_stored_is_the_declared_one(wire: Transport, table: str) -> None:
    with moving_world(wire, table) as made:
        growing = Growing(made)
        error = KeyRangeThrottledError("hot", operation="PutItem", reasons=[ThrottleReason(HOT, "t")])

        growing.growth.throttled(definition(Thing), "move.v1.Thing:abc", error)

    assert [report.target for report in growing.reports] == [8]


def test_a_throttled_table_keeps_its_counts(growing: Growing) -> None:
    items = growing.items(Thing, reason="TableWriteProvisionedThroughputExceeded")

    with pytest.raises(TableThrottledError):
        items.create(Thing(tenant="abc", id="1"))

    assert growing.world.resharder.busy() == []
    assert [report.event for report in growing.reports] == [GrowthEvent.LIMIT]


def test_a_count_that_changes_already_is_left_alone(growing: Growing) -> None:
    growing.world.resharder.start(partition(Thing), 16)
    items = growing.items(Thing, reason=HOT)

    with pytest.raises(KeyRangeThrottledError):
        items.create(Thing(tenant="abc", id="1"))

    [report] = growing.reports
    assert (report.event, report.target) == (GrowthEvent.KEPT, None)
    assert report.reason.endswith("its count of 4 is changing to 16 already")
    assert growing.world.finish(partition(Thing)).count == 16


def test_of_two_processes_only_one_requests_a_resize(growing: Growing) -> None:
    other = Growing(growing.world)
    items = growing.items(Thing, reason=HOT)
    pauses: list[float] = []

    def meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            with pytest.raises(KeyRangeThrottledError):
                other.items(Thing, reason=HOT).create(Thing(tenant="abc", id="2"))

    growing.growth._runtime = growing.growth._runtime._replace(sleep=meanwhile)
    with pytest.raises(KeyRangeThrottledError):
        items.create(Thing(tenant="abc", id="1"))

    assert ([r.event for r in other.reports], [r.event for r in growing.reports]) == (
        [GrowthEvent.ASKED],
        [GrowthEvent.LOST],
    )
    assert growing.world.finish(partition(Thing)).count == 8
