"""The controller publishes one phase at a time, each when the one before has reached everybody."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from dynashard.errors import InvalidValueError, ReshardRefusedError
from dynashard.resharding import Scope, Timing
from dynashard.topology import Record
from dynashard.transport import Transport
from tests.engine.resharding.resharding_world import (
    TIMING,
    WAIT,
    Bare,
    Event,
    Modulo,
    Moving,
    Old,
    Thing,
    index,
    moving_world,
    partition,
    whole,
)
from tests.engine.topology.topology_world import put_by_hand
from tests.faults import afterwards, lost_answer, meanwhile

pytestmark = pytest.mark.engine

ABC = partition(Thing)
MOVING = [ABC, whole(Thing)]
STAGES = ["pending", "prepare", "move", "settle", "sweep", "stable"]


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def published(world: Moving, scope: Scope) -> list[tuple[str, float]]:
    """Each stage of a change, and when it was published, with somebody asking every 7 seconds."""
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

    assert [stage for stage, _ in seen] == STAGES
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
    assert world.finish(ABC, lagging).count == 8
    assert world.misplaced(Thing, 8) == []


def test_an_index_changes_in_three_phases_and_ends_when_all_clients_know(world: Moving) -> None:
    scope = index(Thing, "by_colour")
    world.resharder.start(scope, 8)

    seen = published(world, scope)

    assert [stage for stage, _ in seen] == ["pending", "prepare", "move", "stable"]
    times = [since for _, since in seen]
    assert all(later - earlier >= WAIT for earlier, later in pairwise(times))
    assert world.clock.now >= times[-1] + WAIT
    assert world.resharder.poll() == []


def test_a_longer_earlier_lease_is_waited_for(world: Moving) -> None:
    put_by_hand(world.inner, world.topology, Record("move.v1.Thing", 4, Decimal(1), lease=300.0))
    asked = world.clock.now

    world.resharder.start(ABC, 8)
    world.until(ABC, "prepare")

    assert world.record(ABC.key).since >= asked + TIMING.wait(300.0)
    assert world.record("move.v1.Thing").lease == TIMING.lease


def test_a_resize_request_marks_the_family_before_anything_acts(world: Moving) -> None:
    status = world.resharder.start(ABC, 8)

    family, record = world.record("move.v1.Thing"), world.record(ABC.key)
    assert (status.stage, status.phase, status.count, status.target) == ("pending", "stable", 4, 8)
    assert family.active == {ABC.key}
    assert family.differ_since == world.clock.now
    assert (record.count, record.target, record.lease) == (4, 8, TIMING.lease)
    assert world.resharder.poll() == [ABC.key]


def test_a_finished_change_leaves_its_family_inactive(world: Moving) -> None:
    world.change(ABC, 8)

    assert world.record("move.v1.Thing").active == frozenset()
    assert world.resharder.busy() == []
    assert world.resharder.advance(ABC.key).as_dict() == {"kind": "done", "seconds": 0, "tasks": [], "concurrency": 1}


def test_a_new_partition_starts_from_the_count_of_its_family(world: Moving) -> None:
    world.change(whole(Thing), 16)

    status = world.resharder.start(ABC, 32)

    assert (status.count, status.target) == (16, 32)


@pytest.mark.parametrize(
    ("scope", "to", "reason"),
    [
        (ABC, 6, "not_power_of_two"),
        (ABC, 0, "not_power_of_two"),
        (ABC, 2048, "too_many"),
        (ABC, 4, "same_count"),
        (whole(Thing), 4, "same_count"),
        (index(Thing, "by_colour"), 2, "same_count"),
        (index(Thing, "by_rank"), 2, "unsharded"),
        (partition(Thing, "a:b"), 8, "unknown_partition"),
        (Scope(ABC.entity, "elsewhere:abc"), 8, "unknown_partition"),
        (Scope(ABC.entity, "move.v1.Thing:"), 8, "unknown_partition"),
        (whole(Modulo), 16, "fixed_placement"),
        (whole(Bare), 16, "unsharded"),
    ],
    ids=lambda value: value.key if isinstance(value, Scope) else str(value),
)
def test_an_impossible_change_is_refused_and_changes_nothing(world: Moving, scope: Scope, to: int, reason: str) -> None:
    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder.start(scope, to)

    assert refused.value.reason == reason
    assert world.resharder.poll() == []


def test_a_budget_of_0_is_refused(world: Moving) -> None:
    with pytest.raises(InvalidValueError, match="budget"):
        world.resharder.start(ABC, 8, budget=0)


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_one_change_at_a_time(world: Moving, stage: str) -> None:
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)

    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder.start(ABC, 16)

    assert refused.value.reason == ("not_swept" if stage == "sweep" else "running")


def test_table_and_indexes_of_a_family_change_one_after_the_other(world: Moving) -> None:
    by_colour = index(Thing, "by_colour")
    world.resharder.start(ABC, 8)
    with pytest.raises(ReshardRefusedError) as first:
        world.resharder.start(by_colour, 8)
    world.finish(ABC)
    world.resharder.start(by_colour, 8)
    with pytest.raises(ReshardRefusedError) as second:
        world.resharder.start(ABC, 16)

    assert (first.value.reason, second.value.reason) == ("table_busy", "index_busy")


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_partition_cannot_get_its_own_count_while_all_change(world: Moving, stage: str) -> None:
    world.resharder.start(whole(Thing), 8)
    world.until(whole(Thing), stage)

    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder.start(ABC, 16)

    assert refused.value.reason == "family_busy"


@pytest.mark.parametrize("scope", [*MOVING, partition(Event)], ids=["partition", "family", "random"])
@pytest.mark.parametrize("stage", ["pending", "prepare"])
def test_an_abort_before_anything_moves_ends_the_change(world: Moving, scope: Scope, stage: str) -> None:
    world.fill(Thing, 10)
    before = world.raw()
    count = world.resharder.status(scope).count
    world.resharder.start(scope, 8)
    world.until(scope, stage)

    status = world.resharder.abort(scope)
    still = world.resharder.poll()
    world.finish(scope)

    assert (status.stage, status.count, status.target, status.swept) == ("stable", count, None, True)
    assert still == [scope.key]
    assert world.resharder.poll() == []
    assert world.raw() == before
    assert world.change(scope, 8).count == 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("scope", "stage"),
    [
        *((scope, stage) for scope in (*MOVING, partition(Old)) for stage in ("move", "sweep")),
        (index(Thing, "by_colour"), "move"),
    ],
    ids=lambda value: value.key if isinstance(value, Scope) else value,
)
def test_an_abort_after_items_moved_moves_them_back(world: Moving, scope: Scope, stage: str) -> None:
    world.fill(Thing, 10, colour=lambda _: "red")
    for n in range(10):
        world.put({"PK": {"S": "move.v1.Old:abc"}, "SK": {"S": f"{n:04d}"}, "tenant": {"S": "abc"}})
    before = {(item["PK"]["S"], item["SK"]["S"], item.get("GSI2PK", {"S": ""})["S"]) for item in world.raw()}
    count = world.resharder.status(scope).count
    world.resharder.start(scope, 16)
    world.until(scope, stage)

    status = world.resharder.abort(scope)
    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder.start(scope, 32)
    ended = world.finish(scope)

    assert status.back_to == count
    assert refused.value.reason == "running"
    assert (ended.count, ended.stage, ended.back_to, ended.cause) == (count, "stable", None, "abort")
    after = {(item["PK"]["S"], item["SK"]["S"], item.get("GSI2PK", {"S": ""})["S"]) for item in world.raw()}
    assert after == before
    assert (world.resharder.poll(), world.marks()) == ([], [])


@pytest.mark.parametrize("asked", ["abort", "pause", "resume"])
def test_pause_and_abort_without_a_change_are_refused(world: Moving, asked: str) -> None:
    with pytest.raises(ReshardRefusedError) as never:
        getattr(world.resharder, asked)(ABC)
    world.change(ABC, 8)
    with pytest.raises(ReshardRefusedError) as over:
        getattr(world.resharder, asked)(ABC)

    assert {never.value.reason, over.value.reason} == {"not_running"}


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_paused_change_does_nothing_until_it_is_resumed(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    world.clock.now += WAIT

    paused = world.resharder.pause(ABC, error="the disk is full")
    before = world.raw()
    step = world.resharder.advance(ABC.key)
    worked = [world.resharder.work(ABC.key, task, seconds=60) for task in range(4)]

    assert (paused.paused, paused.error, step.kind, worked) == (True, "the disk is full", "done", [True] * 4)
    assert (world.raw(), world.resharder.status(ABC).stage) == (before, stage)
    assert world.resharder.poll() == [ABC.key]
    resumed = world.resharder.resume(ABC)
    assert (resumed.paused, resumed.error) == (False, None)
    assert world.finish(ABC).count == 8


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


def test_a_request_sent_twice_is_stored_once(world: Moving) -> None:
    other = world.on(world.inner)
    other.status(ABC)
    resharder = world.new([afterwards("TransactWriteItems", lambda: None)])

    first = resharder.start(ABC, 8)

    assert (first.target, world.resharder.status(ABC).target) == (8, 8)


def test_of_two_concurrent_requests_one_is_refused(world: Moving) -> None:
    other = world.on(world.inner)
    other.status(ABC)

    resharder = world.new([meanwhile("TransactWriteItems", lambda: other.start(ABC, 16))])
    with pytest.raises(ReshardRefusedError) as refused:
        resharder.start(ABC, 8)

    assert refused.value.reason == "running"
    assert world.resharder.status(ABC).target == 16


def test_partitions_of_one_family_start_at_once(world: Moving) -> None:
    other = world.on(world.inner)
    other.status(ABC)

    resharder = world.new([meanwhile("TransactWriteItems", lambda: other.start(partition(Thing, "b"), 16))])
    resharder.start(ABC, 8)

    assert world.resharder.poll() == [ABC.key, "move.v1.Thing:b"]
    assert [status.target for status in world.resharder.busy()] == [8, 16]


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


def test_a_change_can_go_without_a_survey(world: Moving) -> None:
    world.fill(Thing, 40)

    status = world.change(ABC, 8, survey=False)

    assert (status.total, status.swept_marks) == (None, status.moved)


def test_an_unknown_record_is_refused(world: Moving) -> None:
    with pytest.raises(Exception, match="no entity is known"):
        world.resharder.advance("nobody.v1.Knows:abc")


@pytest.mark.parametrize("wrong", [{"lease": 0.0}, {"operation": -1.0}, {"skew": -1.0}, {"lag": -1.0}])
def test_timing_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="seconds"):
        replace(Timing(), **wrong)
