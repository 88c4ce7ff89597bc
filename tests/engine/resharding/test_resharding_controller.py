"""The controller publishes one phase at a time, each when all clients see the previous one."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from dynashard.resharding import Scope, Timing
from dynashard.testing.faults import lost_answer, meanwhile
from dynashard.topology import Record
from tests.engine.resharding.resharding_world import (
    ABC,
    STAGES,
    TIMING,
    WAIT,
    Event,
    Moving,
    Thing,
    index,
    partition,
    whole,
)
from tests.engine.topology.topology_world import put_by_hand

pytestmark = pytest.mark.engine

MOVING = [ABC, whole(Thing)]


def published(world: Moving, scope: Scope) -> list[tuple[str, float]]:
    """Advance a resize every 7 seconds, and return its stages with the times of their publication."""
    seen: list[tuple[str, float]] = []
    for _ in range(60):
        status = world.resharder.status(scope)
        if not seen or seen[-1][0] != status.stage:
            seen.append((status.stage, status.since))
        step = world.resharder.advance(scope.key)
        for task in step.tasks:
            world.resharder.work(scope.key, task, seconds=60)
        if step.kind == "done":
            last = world.resharder.status(scope)
            return seen if seen[-1][0] == last.stage else [*seen, (last.stage, world.clock.now)]
        world.clock.now += 7 if step.kind == "wait" else 0
    raise AssertionError(f"never ended: {seen}")


@pytest.mark.parametrize("scope", MOVING, ids=["partition", "family"])
def test_every_phase_waits_until_all_clients_see_the_previous_one(world: Moving, scope: Scope) -> None:
    world.resharder.start(scope, 8)

    seen = published(world, scope)

    assert [stage for stage, _ in seen] == list(STAGES)
    times = [since for _, since in seen]
    assert all(later - earlier >= WAIT for earlier, later in pairwise(times))


@pytest.mark.parametrize("stage", STAGES[1:4])
def test_the_wait_for_a_late_publication_starts_when_it_arrives(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, STAGES[STAGES.index(stage) - 1])
    arrived: list[float] = []

    def late() -> None:
        if not arrived:
            world.clock.now += 40.0
            arrived.append(world.clock.now)

    slow = world.new([meanwhile("PutItem", late, nth=None)])
    world.until(ABC, stage, slow)
    world.until(ABC, STAGES[STAGES.index(stage) + 1])

    assert world.record(ABC.key).since >= arrived[0] + WAIT


def test_items_are_counted_only_during_the_wait_for_every_client(world: Moving) -> None:
    world.fill(Thing, 40)
    world.resharder.start(ABC, 8)
    assert (world.step(ABC.key).kind, world.step(ABC.key).kind) == ("work", "wait")
    assert world.resharder.advance(ABC.key).kind == "work"
    since = world.record(ABC.key).since

    world.clock.now = since + WAIT - 0.01
    during = world.resharder.advance(ABC.key)
    world.clock.now = since + WAIT
    world.resharder.advance(ABC.key)

    assert (during.kind, len(during.tasks)) == ("work", 4)
    status = world.resharder.status(ABC)
    assert (status.stage, status.total) == ("move", None)


def test_settling_leaves_lagging_reads_time_to_see_the_last_move(world: Moving) -> None:
    world.fill(Thing, 20)
    lagging = world.new(timing=replace(TIMING, lag=5.0))
    lagging.start(ABC, 8)
    world.until(ABC, "move", lagging)
    while world.step(ABC.key, lagging).kind != "work":
        pass
    moved = world.clock.now

    world.until(ABC, "settle", lagging)

    assert world.record(ABC.key).since >= moved + 5.0
    while world.step(ABC.key, lagging).kind != "work":
        pass
    settled = world.clock.now
    world.until(ABC, "sweep", lagging)
    assert world.record(ABC.key).since >= settled + 5.0
    assert world.finish(ABC, lagging).count == 8
    assert world.misplaced(Thing, 8) == []


def test_a_last_move_that_was_seen_by_a_clock_ahead_delays_settling_by_one_lag(world: Moving) -> None:
    world.fill(Thing, 20)
    lagging = world.new(timing=replace(TIMING, lag=5.0))
    lagging.start(ABC, 8)
    world.until(ABC, "move", lagging)
    while world.step(ABC.key, lagging).kind != "work":
        pass
    world.clock.now += 86_400
    lagging.advance(ABC.key)
    world.clock.now -= 86_400
    began = world.clock.now

    world.until(ABC, "settle", lagging)

    assert world.record(ABC.key).since == began + 5.0


def test_an_index_changes_in_three_phases_and_ends_when_all_clients_know(world: Moving) -> None:
    scope = index(Thing, "by_colour")
    world.resharder.start(scope, 8, rewrite=True)

    seen = published(world, scope)

    assert [stage for stage, _ in seen] == ["pending", "prepare", "move", "stable"]
    times = [since for _, since in seen]
    assert all(later - earlier >= WAIT for earlier, later in pairwise(times))
    assert world.clock.now >= times[-1] + WAIT
    assert world.resharder.poll() == []


def test_a_shrink_that_moves_nothing_leaves_no_progress_behind(world: Moving) -> None:
    assert world.resize(partition(Event), 1).count == 1
    assert world.progress_items() == []


def test_a_longer_earlier_lease_is_waited_for(world: Moving) -> None:
    put_by_hand(world.inner, world.topology, Record("move.v1.Thing", 4, Decimal(1), lease=300.0))
    asked = world.clock.now

    world.resharder.start(ABC, 8)
    world.until(ABC, "prepare")

    assert world.record(ABC.key).since >= asked + TIMING.wait(300.0)
    assert world.record("move.v1.Thing").lease == TIMING.lease


@pytest.mark.parametrize("stage", ["pending", "prepare", "move", "settle", "sweep"])
def test_moving_and_sweeping_wait_for_their_phase(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, stage)
    world.clock.now = world.record(ABC.key).since
    before = world.raw()

    for seconds in (0.0, WAIT - 0.01):
        world.clock.now = world.record(ABC.key).since + seconds
        worked = [world.resharder.work(ABC.key, task, seconds=60) for task in range(4)]

    assert worked == [True] * 4
    assert world.raw() == before


@pytest.mark.parametrize("stage", ["pending", "prepare", "move", "settle", "sweep"])
def test_two_controllers_publish_once(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, stage)
    if stage == "pending":
        # The process that stored the request did not wait until it was visible to all.
        world.resharder.advance(ABC.key)
    world.clock.now = world.record(ABC.key).since + WAIT
    other = world.on(world.inner)
    for task in world.resharder.advance(ABC.key).tasks:
        other.work(ABC.key, task, seconds=60)
    publishing = "TransactWriteItems" if stage == "sweep" else "PutItem"

    one = world.new([meanwhile(publishing, lambda: other.advance(ABC.key))])
    one.advance(ABC.key)

    following = STAGES[STAGES.index(stage) + 1]
    assert world.resharder.status(ABC).stage == following
    assert world.record(ABC.key).since == world.clock.now or following == "stable"


@pytest.mark.parametrize("stage", ["pending", "prepare", "move", "settle", "sweep"])
def test_a_publication_whose_answer_was_lost_is_looked_up(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    world.clock.now = world.record(ABC.key).since + WAIT

    lossy = world.new([lost_answer("PutItem", nth=None)])
    for _ in range(40):
        try:
            if world.step(ABC.key, lossy).kind == "done":
                break
        except Exception:  # noqa: BLE001, S112 - what a driver does: it asks again
            continue

    assert world.resharder.status(ABC).count == 8
    assert world.misplaced(Thing, 8) == []


def test_a_count_that_never_changed_has_counted_nothing(world: Moving) -> None:
    world.fill(Thing, 4)

    status = world.resharder.status(whole(Thing))

    counted = (status.moved, status.late, status.left, status.swept_marks, status.write_units, status.read_units)
    assert (counted, status.total, status.begun, status.busy) == ((0,) * 6, None, False, False)


def test_a_status_is_plain_json_and_shows_the_progress(world: Moving) -> None:
    world.fill(Thing, 40)
    world.resharder.start(ABC, 8, budget=50.0, cause="throttle")
    world.until(ABC, "move")
    world.clock.now += WAIT
    world.resharder.work(ABC.key, 0, seconds=60)
    world.clock.now += 10

    status = world.resharder.status(ABC)

    assert json.loads(json.dumps(status.as_dict())) == status.as_dict()
    assert (status.entity, status.partition, status.cause) == ("move.v1.Thing", "move.v1.Thing:abc", "throttle")
    assert status.total is not None
    assert 0 < status.moved < status.total
    assert status.write_units >= 4 * status.moved
    assert status.seconds_left is not None
    assert status.seconds_left > 2 * WAIT


def test_an_unknown_record_is_refused(world: Moving) -> None:
    with pytest.raises(Exception, match="no entity is known"):
        world.resharder.advance("nobody.v1.Knows:abc")


@pytest.mark.parametrize("wrong", [{"lease": 0.0}, {"operation": -1.0}, {"skew": -1.0}, {"lag": -1.0}])
def test_timing_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="seconds"):
        replace(Timing(), **wrong)
