"""Changes that start by themselves: declined if they would take long, withdrawn if the shards are needed."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynashard import definition
from dynashard.errors import InvalidValueError, KeyRangeThrottledError, ThrottledError, ThrottleReason
from dynashard.growth.policy import Growth
from dynashard.growth.requests import growth_of, shrink_quiet
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.resharding import Resharder, Scope, Share
from dynashard.resharding.stored_amount import PAGES
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, Send, throttled, unreachable
from dynashard.transport import Transport, Wire
from tests.engine.resharding.resharding_world import TIMING, WAIT, Event, Moving, Thing, index, moving_world, partition

pytestmark = pytest.mark.engine

DAY = 24 * 3600.0
HOT = KeyRangeThrottledError(
    "hot", operation="PutItem", reasons=[ThrottleReason("TableWriteKeyRangeThroughputExceeded", "t")]
)


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def policy(world: Moving, reports: list[Report], environment: str = "") -> Growth:
    """Return a policy of a process that requests resizes on the engine, without a random wait."""
    settings = GrowthSettings(wait_low=0.0, wait_high=0.0, environment=environment)
    return growth_of(world.resharder, settings=settings, report=reports.append)


def throttle(growth: Growth, scope: Scope, error: ThrottledError = HOT) -> None:
    growth.throttled(scope.entity, scope.partition, error)


def events(reports: list[Report]) -> list[GrowthEvent]:
    return [each.event for each in reports]


def test_a_short_change_begins_and_says_how_long_it_is_expected_to_take(world: Moving) -> None:
    world.fill(Thing, 40)
    worker = world.new(most_seconds=600.0)

    world.resharder.start(partition(Thing), 8, cause="throttle")
    begun = world.until(partition(Thing), "prepare", worker)

    assert begun.declined is None
    assert begun.expected == pytest.approx(5 * WAIT, abs=5)
    assert world.finish(partition(Thing), worker).count == 8


@pytest.mark.parametrize("cause", ["throttle", "quiet"])
def test_a_long_change_that_starts_by_itself_is_declined_and_nothing_moves(world: Moving, cause: str) -> None:
    world.fill(Thing, 40)
    worker = world.new(most_seconds=5 * WAIT - 1)

    world.resharder.start(partition(Thing), 2 if cause == "quiet" else 8, cause=cause)
    ended = world.finish(partition(Thing), worker)

    assert (ended.count, ended.target, ended.busy, ended.moved) == (4, None, False, 0)
    assert ended.taken_back == (2 if cause == "quiet" else 8)
    assert ended.declined is not None
    assert "by itself it may take at most 4 minutes" in ended.declined
    assert world.marks() == []


def test_the_same_resize_begins_if_an_operator_starts_it(world: Moving) -> None:
    world.fill(Thing, 40)
    worker = world.new(most_seconds=1.0)

    world.resharder.start(partition(Thing), 8, cause="throttle")
    world.finish(partition(Thing), worker)
    world.resharder.start(partition(Thing), 8)

    ended = world.finish(partition(Thing), worker)
    assert (ended.count, ended.declined, ended.taken_back) == (8, None, None)


def test_a_throttle_of_the_count_of_items_delays_the_judgement_and_declines_nothing(world: Moving) -> None:
    world.fill(Thing, 40)
    left = [throttled("Query", reason="TableReadKeyRangeThroughputExceeded")]

    def once(send: Send, request: Mapping[str, Any]) -> Wire:
        return left.pop().strike(send, request) if left else send(request)

    worker = world.new([Fault("Query", once, nth=None, text="COUNT")], most_seconds=600.0)

    world.resharder.start(partition(Thing), 8, cause="throttle")
    ended = world.finish(partition(Thing), worker)

    assert (ended.count, ended.declined) == (8, None)


def test_items_that_callers_create_meanwhile_count(world: Moving) -> None:
    world.resharder.start(partition(Thing), 8, cause="throttle", creating=1.0)

    ended = world.finish(partition(Thing))

    assert ended.declined is not None
    assert "by itself it may take at most 10 minutes" in ended.declined


@pytest.mark.parametrize(("environment", "option"), [("", ""), ("prod", " --env prod")])
def test_a_declined_resize_is_reported_with_its_command_and_not_requested_again_for_an_hour(
    world: Moving, environment: str, option: str
) -> None:
    world.fill(Thing, 40)
    worker, reports = world.new(most_seconds=1.0), list[Report]()
    growth, scope = policy(world, reports, environment), partition(Thing)
    world.clock.now += DAY

    throttle(growth, scope)
    throttle(growth, scope)
    world.finish(scope, worker)
    for _ in range(3):
        world.clock.now += 301
        throttle(growth, scope)
        throttle(growth, scope)
    world.clock.now += 3600
    throttle(growth, scope)
    throttle(growth, scope)

    assert events(reports) == [GrowthEvent.ASKED, *[GrowthEvent.TOO_LONG] * 3, GrowthEvent.ASKED]
    assert f"`dynashard reshard start move.v1.Thing abc --to 8{option}`" in reports[1].reason
    # Without evidence of what callers ask for, all that a full shard takes counts as creations.
    assert "but it moves 224,0" in reports[1].reason


def test_an_estimate_counts_what_stands_in_the_shards(world: Moving) -> None:
    world.fill(Thing, 40)
    world.fill(Thing, 7, tenant="xyz")

    found = world.resharder.estimate(partition(Thing), 8)

    assert (found.items, found.error) == (20, 0)
    assert found.waiting == pytest.approx(5 * WAIT)
    assert world.resharder.busy() == []


def endless(send: Send, request: Mapping[str, Any]) -> Wire:
    """Answer a count as of a shard that is so large that it has another page, always."""
    answer = send(request)
    return {**answer, "LastEvaluatedKey": {"PK": {"S": "x"}, "SK": {"S": "x"}}}


ENDLESS = Fault("Query", endless, nth=None, text="COUNT")


def test_of_shards_that_are_too_large_to_count_a_lower_bound_and_that_of_the_table_are_known(world: Moving) -> None:
    world.fill(Thing, 40)

    found = world.new([ENDLESS]).estimate(partition(Thing), 8)

    counted = [call for call in world.faulty.calls if call.operation == "Query"]
    assert (found.error, found.most, len(counted)) == (None, 20, PAGES)
    assert "at least" in found.text


def test_without_a_description_of_the_table_no_upper_bound_is_known(world: Moving) -> None:
    world.fill(Thing, 40)

    found = world.new([ENDLESS, unreachable("DescribeTable")]).estimate(partition(Thing), 8)

    assert (found.error, found.most) == (None, None)


def test_an_index_is_estimated_by_its_description(world: Moving) -> None:
    world.fill(Thing, 40, colour=lambda _: "red")

    found = world.resharder.estimate(index(Thing, "by_colour"), 4, rewrite=True)
    alone = world.resharder.estimate(index(Thing, "by_colour"), 4)

    assert found.waiting == pytest.approx(4 * WAIT)
    assert (alone.items, alone.write_units) == (0, 0)
    assert alone.waiting == pytest.approx(2 * WAIT)


def test_an_index_that_is_described_without_entries_has_at_most_those_of_the_table(world: Moving) -> None:
    """The engine of these tests counts no entries of indexes, as DynamoDB in the first hours."""
    world.fill(Thing, 40, colour=lambda _: "red")

    found = world.resharder.estimate(index(Thing, "by_colour"), 4, rewrite=True)

    assert (found.items, found.most) == (40, 40)
    assert found.text.startswith("moves up to 40 items, consumes ")


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_share_may_be_all_that_a_shard_gives(world: Moving, share: float) -> None:
    world.fill(Thing, 4)

    world.resharder.start(partition(Thing), 8, share=share)

    assert world.finish(partition(Thing)).count == 8


@pytest.mark.parametrize("share", [-0.1, 0.0, 1.5])
def test_a_share_that_no_shard_has_is_refused(world: Moving, share: float) -> None:
    with pytest.raises(InvalidValueError, match="above 0 and at most 1"):
        world.resharder.start(partition(Thing), 8, share=share)


def test_the_mover_takes_no_more_than_its_share_of_an_old_shard(world: Moving) -> None:
    world.fill(Thing, 200)
    slow = world.new(share=Share(0.01))
    world.resharder.start(partition(Thing), 8)
    world.until(partition(Thing), "move", slow)
    while world.resharder.advance(partition(Thing).key).kind == "wait":
        world.clock.now += 1
    [task, *_] = world.resharder.advance(partition(Thing).key).tasks
    begun = world.clock.now

    while not slow.work(partition(Thing).key, task, seconds=1e9):
        pass

    moved = sum(progress.moved for progress in [world.resharder.status(partition(Thing))])
    # One unit in a hundred of 1,000, and 2 for each item at the old shard, entries in three indexes included.
    assert moved > 10
    assert world.clock.now - begun >= (moved - 1) * 2 / 10


def narrowed(world: Moving) -> Scope:
    """Let a log grow, and be quiet until its count waits to be halved; its items have not expired."""
    scope = partition(Event)
    world.fill(Event, 8)
    world.resize(scope, 4, cause="throttle")
    world.fill(Event, 30)
    world.clock.now += DAY
    [report] = shrink_quiet(world.resharder, settings=GrowthSettings())
    assert report.event is GrowthEvent.ASKED
    for _ in range(4):
        world.step(scope.key)
    return scope


def test_a_count_that_waits_to_be_halved_says_for_what(world: Moving) -> None:
    scope = narrowed(world)

    status = world.resharder.status(scope)

    assert (status.stage, status.target, status.waits_for, status.until) == ("prepare", 2, "empty_shards", None)


def test_a_log_that_is_hot_again_keeps_its_shards_at_the_first_throttle_and_grows_as_usual(world: Moving) -> None:
    scope, reports = narrowed(world), list[Report]()
    growth = policy(world, reports)

    throttle(growth, scope)

    withdrawn = world.resharder.status(scope)
    assert (withdrawn.count, withdrawn.target, events(reports)) == (4, None, [GrowthEvent.WITHDRAWN])
    world.finish(scope)
    world.clock.now += 300
    throttle(growth, scope)
    throttle(growth, scope)
    began = world.clock.now
    assert (world.finish(scope).count, events(reports)[1:]) == (8, [GrowthEvent.ASKED])
    assert world.clock.now - began <= 2 * WAIT + 2


def test_a_log_that_grows_is_not_kept_from_it_by_throttles(world: Moving) -> None:
    scope, reports = partition(Event), list[Report]()
    world.fill(Event, 8)
    world.resharder.start(scope, 4, cause="throttle")
    world.until(scope, "prepare")

    throttle(policy(world, reports), scope)

    assert (world.resharder.status(scope).target, events(reports)) == (4, [])
    assert world.finish(scope).count == 4


def test_of_a_log_that_does_not_change_the_count_is_read_and_nothing_else(world: Moving) -> None:
    scope = partition(Event)
    world.fill(Event, 8)
    resharder = world.new()
    growth = growth_of(resharder, settings=GrowthSettings(), report=lambda _: None)

    throttle(growth, scope)

    assert [call.operation for call in world.faulty.calls] == ["BatchGetItem"]


def test_a_log_whose_items_do_not_expire_is_not_halved_by_itself(
    world: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = partition(Event)
    world.fill(Event, 8)
    world.resize(scope, 4, cause="throttle")
    world.clock.now += DAY
    monkeypatch.setattr(definition(Event), "expires", None)

    assert shrink_quiet(world.resharder, settings=GrowthSettings()) == []


def ahead(world: Moving, seconds: float) -> Resharder:
    """Return a worker whose clock is ahead."""
    runtime = Runtime(lambda: world.clock.now + seconds, world.sleep, lambda: 0.5)
    worker = world.new()
    return Resharder(
        world.inner,
        table=world.table,
        topology_table=world.topology,
        runtime=runtime,
        timing=TIMING,
        entities=[each.model for each in worker.entities],
        segments=world.segments,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "to"), [(Thing, 8), (Event, 8)], ids=["calculated", "random"])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_worker_whose_clock_was_ahead_for_a_moment_delays_a_resize_by_one_wait(
    world: Moving, model: type[Thing | Event], to: int, steps: int
) -> None:
    scope = partition(model)
    world.fill(model, 20)
    fast = ahead(world, DAY)
    fast.start(scope, to)
    for _ in range(steps):
        fast.advance(scope.key)
    began = world.clock.now

    says = world.resharder.status(scope)
    ended = world.finish(scope)

    assert says.until is None or says.until <= began + WAIT + 1
    assert ended.count == to
    assert world.clock.now - began <= 7 * WAIT + 60


def test_status_says_until_when_clients_are_waited_for(world: Moving) -> None:
    world.resharder.start(partition(Thing), 8)
    unseen = world.resharder.status(partition(Thing))
    world.resharder.advance(partition(Thing).key)

    seen = world.resharder.status(partition(Thing))

    assert (unseen.waits_for, seen.waits_for) == ("worker", "clients")
    assert seen.until == pytest.approx(world.clock.now + WAIT)
    world.resharder.pause(partition(Thing))
    assert world.resharder.status(partition(Thing)).waits_for == "resume"
