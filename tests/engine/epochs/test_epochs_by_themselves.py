"""A hot partition grows by an epoch, by itself: at once to what the demand needs, and never back."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from dynashard import Dynashard
from dynashard.errors import KeyRangeThrottledError, ThrottleReason
from dynashard.growth.demand import CountingTransport, Demand
from dynashard.growth.opening import GrowthOptions
from dynashard.growth.requests import growth_of, shrink_quiet
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.key_clock import ClockBounds
from dynashard.testing.faults import FaultyTransport, throttled
from tests.engine.epochs.epochs_world import CLOCKS, KEYS, LEASE, TIMING, Epochs, Event, Reading, partition

pytestmark = pytest.mark.engine

DAY = 24 * 3600.0
HOT = "TableWriteKeyRangeThroughputExceeded"


def growing(world: Epochs, reports: list[Report]) -> tuple[Dynashard, Callable[[], None]]:
    """Return a process that reports throttles to the growth policy, and what makes all further writes throttle."""
    demand = Demand(world.clock)
    faulty = FaultyTransport(world.inner)
    policy = growth_of(world.resharder(), settings=GrowthSettings(), waits=True, demand=demand, report=reports.append)
    db = Dynashard(
        CountingTransport(faulty, world.table, demand),
        table=world.table,
        topology_table=world.topology,
        cursor_keys=KEYS,
        lease=LEASE,
        runtime=world.runtime(),
        clocks=CLOCKS,
        growth="off",
        throttled=policy.throttled,
    )
    return db, lambda: faulty.inject(throttled("PutItem", reason=HOT, nth=None))


def demand_more(world: Epochs, db: Dynashard, hot: Callable[[], None]) -> None:
    """Write a little, then be refused much more: the demand is many times what the shard gives."""
    events = db.collection(Event)
    hot()
    for _ in range(3):
        with pytest.raises(KeyRangeThrottledError):
            events.create(tenant="abc", id=world.id())


def test_a_hot_partition_grows_within_two_waits_and_nothing_moves(world: Epochs) -> None:
    reports: list[Report] = []
    db, hot = growing(world, reports)
    world.write(db, 20)
    world.clock.now += 3600
    before, began = world.raw(), world.clock.now

    demand_more(world, db, hot)
    status = world.resharder().status(partition())
    world.finish()

    assert [report.event for report in reports] == [GrowthEvent.ASKED]
    assert (status.cause, status.target) == ("throttle", reports[0].target)
    assert world.counts()[-1] == (reports[0].target, "confirmed")
    assert world.clock.now - began <= 10 + TIMING.ahead(LEASE) + 1
    assert world.raw() == before


def test_an_unsharded_partition_grows_by_itself(world: Epochs) -> None:
    world.process().collection(Reading).find(sensor="s1", at=datetime.fromtimestamp(world.clock.now, UTC), id="1")
    world.clock.now += 3600
    reports: list[Report] = []
    policy = growth_of(world.resharder(), settings=GrowthSettings(), waits=True, report=reports.append)
    scope = partition("s1", Reading)

    hot = KeyRangeThrottledError("hot", operation="PutItem", reasons=[ThrottleReason(HOT, "arn:x:table/t")])
    policy.throttled(scope.entity, scope.partition, hot)
    world.finish(scope)

    assert [report.event for report in reports] == [GrowthEvent.ASKED]
    assert world.counts(scope.key) == [(0, "confirmed"), (2, "confirmed")]


def test_a_count_of_epochs_never_shrinks_by_itself(world: Epochs) -> None:
    world.grow(16)
    world.clock.now += 100 * DAY

    assert shrink_quiet(world.resharder(), settings=GrowthSettings()) == []


def test_a_count_that_has_grown_by_an_epoch_cools_down_from_its_confirmation_on(world: Epochs) -> None:
    reports: list[Report] = []
    # Shorter than an epoch takes to be confirmed.
    settings, scope = GrowthSettings(cooldown_seconds=30), partition()
    hot = KeyRangeThrottledError("hot", operation="PutItem", reasons=[ThrottleReason(HOT, "arn:x:table/t")])
    world.write(world.process())
    world.clock.now += settings.cooldown_seconds

    def throttle() -> list[GrowthEvent]:
        """Throttle a process that knows nothing of what others did, and return what it reports."""
        reports.clear()
        policy = growth_of(world.resharder(), settings=settings, waits=True, report=reports.append)
        policy.throttled(scope.entity, scope.partition, hot)
        return [each.event for each in reports]

    assert throttle() == [GrowthEvent.ASKED]
    while world.counts()[-1][1] == "pending":
        assert throttle() == [GrowthEvent.KEPT]
        world.clock.now += world.resharder().advance(scope.key).seconds
    confirmed = world.clock.now
    assert throttle() == [GrowthEvent.KEPT]
    world.finish()

    # It has begun, and that is not long enough.
    assert world.clock.now < confirmed + settings.cooldown_seconds - 1
    world.clock.now = confirmed + settings.cooldown_seconds - 1
    assert throttle() == [GrowthEvent.KEPT]
    world.clock.now += 1
    assert throttle() == [GrowthEvent.ASKED]
    assert [count for count, _ in world.counts()] == [1, 2, 4]


def test_a_count_whose_epoch_was_taken_back_cools_down_too(world: Epochs) -> None:
    reports: list[Report] = []
    settings, scope = GrowthSettings(), partition()
    hot = KeyRangeThrottledError("hot", operation="PutItem", reasons=[ThrottleReason(HOT, "arn:x:table/t")])
    world.write(world.process())
    world.clock.now += settings.cooldown_seconds
    world.resharder().start(scope, 4)
    world.clock.now += 20
    world.resharder().abort(scope)
    taken_back = world.clock.now

    found = []
    for seconds in (settings.cooldown_seconds - 10, settings.cooldown_seconds):
        world.clock.now = taken_back + seconds
        reports.clear()
        policy = growth_of(world.resharder(), settings=settings, waits=True, report=reports.append)
        policy.throttled(scope.entity, scope.partition, hot)
        found.append([each.event for each in reports])

    assert found == [[GrowthEvent.KEPT], [GrowthEvent.ASKED]]


def test_a_resharder_of_a_program_gives_clocks_and_keys_as_much_as_all_processes_assume(world: Epochs) -> None:
    begins = []
    bounds = {"abc": CLOCKS, "xyz": ClockBounds(off=CLOCKS.off, ahead=CLOCKS.ahead + 50)}
    for tenant, clocks in bounds.items():
        db = Dynashard(
            world.inner,
            table=world.table,
            topology_table=world.topology,
            cursor_keys=KEYS,
            lease=LEASE,
            runtime=world.runtime(),
            clocks=clocks,
            growth=GrowthOptions(entities=[Event]),
        )
        world.write(db, tenant=tenant)
        db.resharder().start(partition(tenant), 4)
        begins.append(world.record(partition(tenant).key).epochs[-1].first)

    assert begins[0] < begins[1]
