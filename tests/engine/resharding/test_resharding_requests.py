"""Requests to change a count, to pause it and to abort it: which are accepted, and which are refused."""

import pytest

from dynashard.errors import InvalidValueError, ReshardRefusedError
from dynashard.resharding import Scope
from dynashard.testing.faults import afterwards, meanwhile
from tests.engine.resharding.resharding_world import (
    ABC,
    STAGES,
    TIMING,
    WAIT,
    Bare,
    Event,
    Modulo,
    Moving,
    Old,
    Thing,
    index,
    partition,
    whole,
)

pytestmark = pytest.mark.engine

MOVING = [ABC, whole(Thing)]


def test_a_resize_request_marks_the_family_before_anything_acts(world: Moving) -> None:
    status = world.resharder.start(ABC, 8)

    family, record = world.record("move.v1.Thing"), world.record(ABC.key)
    assert (status.stage, status.phase, status.count, status.target) == ("pending", "stable", 4, 8)
    assert family.active == {ABC.key}
    assert family.differ_since == world.clock.now
    assert (record.count, record.target, record.lease) == (4, 8, TIMING.lease)
    assert world.resharder.poll() == [ABC.key]


def test_a_finished_resize_leaves_its_family_inactive(world: Moving) -> None:
    world.resize(ABC, 8)

    assert world.record("move.v1.Thing").active == frozenset()
    assert world.resharder.busy() == []
    assert world.resharder.advance(ABC.key).as_dict() == {"kind": "done", "seconds": 0, "tasks": [], "concurrency": 1}


def test_a_new_partition_starts_from_the_count_of_its_family(world: Moving) -> None:
    world.resize(whole(Thing), 16)

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
def test_an_impossible_resize_is_refused_and_changes_nothing(world: Moving, scope: Scope, to: int, reason: str) -> None:
    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder.start(scope, to)

    assert refused.value.reason == reason
    assert world.resharder.poll() == []


def test_a_budget_of_0_is_refused(world: Moving) -> None:
    with pytest.raises(InvalidValueError, match="budget"):
        world.resharder.start(ABC, 8, budget=0)


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_one_resize_at_a_time(world: Moving, stage: str) -> None:
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scope", [*MOVING, partition(Event)], ids=["partition", "family", "random"])
@pytest.mark.parametrize("stage", ["pending", "prepare"])
def test_an_abort_before_anything_moves_ends_the_resize(world: Moving, scope: Scope, stage: str) -> None:
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
    assert world.resize(scope, 8).count == 8


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
    world.resharder.start(scope, 16, rewrite=True if scope.index else None)
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
def test_pause_and_abort_without_a_resize_are_refused(world: Moving, asked: str) -> None:
    with pytest.raises(ReshardRefusedError) as never:
        getattr(world.resharder, asked)(ABC)
    world.resize(ABC, 8)
    with pytest.raises(ReshardRefusedError) as over:
        getattr(world.resharder, asked)(ABC)

    assert {never.value.reason, over.value.reason} == {"not_running"}


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_paused_resize_does_nothing_until_it_is_resumed(world: Moving, stage: str) -> None:
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


def test_a_resize_can_go_without_a_survey(world: Moving) -> None:
    world.fill(Thing, 40)

    status = world.resize(ABC, 8, survey=False)

    assert (status.total, status.swept_marks) == (None, status.moved)
