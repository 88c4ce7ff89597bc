"""The loop of a local worker finishes every resize, despite faults and kills."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Lock
from typing import Any

import pytest

from dynashard.resharding import Resharder
from dynashard.resharding.driver import drive
from dynashard.testing.faults import Fault, FaultyTransport, lost_request, throttled
from dynashard.transport import Transport
from dynashard.transport.interface import Wire
from tests.engine.resharding.resharding_world import Event, Moving, Old, Thing, index, moving_world, partition, whole

pytestmark = pytest.mark.engine


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def run(world: Moving, resharder: Resharder, *, loops: int = 5000) -> list[str]:
    """Drive until no resize is left, and return the log."""
    left = iter(range(loops))
    logged: list[str] = []

    def stop() -> bool:
        assert next(left, None) is not None, f"not over after {loops} rounds: {world.resharder.busy()}"
        return world.on(world.inner).poll() == []

    drive(resharder, stop=stop, sleep=leap(world), log=logged.append)
    return logged


def leap(world: Moving) -> Callable[[float], None]:
    """Return a sleep that advances the clock by ten times the pause, so that tests do not wait."""

    def sleep(seconds: float) -> None:
        world.clock.now += 10 * seconds

    return sleep


def test_several_resizes_are_carried_out_concurrently(world: Moving) -> None:
    for tenant in ("abc", "b"):
        world.fill(Thing, 30, tenant=tenant)
    scopes = [partition(Thing), partition(Thing, "b"), partition(Event), whole(Old)]
    for scope in scopes:
        world.resharder.start(scope, 16)

    logged = run(world, world.on(world.inner))

    assert logged == []
    assert [world.resharder.status(scope).count for scope in scopes] == [16] * 4
    assert (world.misplaced(Thing, 16), world.marks()) == ([], [])


def test_a_resize_requested_while_the_worker_runs_is_carried_out(world: Moving) -> None:
    world.fill(Thing, 10, colour=lambda _: "red")
    rounds = iter(range(2000))

    def stop() -> bool:
        now = next(rounds)
        if now == 3:
            world.resharder.start(index(Thing, "by_colour"), 8)
        return now > 3 and world.resharder.poll() == []

    drive(world.on(world.inner), stop=stop, sleep=leap(world))

    assert world.resharder.status(index(Thing, "by_colour")).count == 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "fault",
    [
        Fault("BatchGetItem", lambda *_: explode(), nth=4),
        Fault("Query", lambda *_: explode(), nth=2),
        lost_request("PutItem", nth=2),
        lost_request("BatchGetItem", nth=1),
        lost_request("PutItem", nth=6),
        throttled("TransactWriteItems", nth=2),
        lost_request("UpdateItem", nth=2),
        lost_request("DeleteItem", nth=5),
    ],
    ids=lambda fault: f"{fault.operation} {fault.nth}",
)
def test_errors_are_logged_and_retried(world: Moving, fault: Fault) -> None:
    world.fill(Thing, 30)
    world.resharder.start(partition(Thing), 8)
    faulty = FaultyTransport(world.inner, [fault])

    run(world, world.on(faulty))

    assert faulty.waiting == []
    assert world.resharder.status(partition(Thing)).count == 8
    assert (world.misplaced(Thing, 8), world.marks()) == ([], [])


def explode() -> Wire:
    raise RuntimeError("a mistake of the programmer")


def test_a_lasting_failure_is_logged_less_and_less_often_and_hinders_no_other_change(world: Moving) -> None:
    world.resharder.start(partition(Thing), 8)
    world.resharder.start(partition(Old), 8)
    resharder = world.on(world.inner)
    advance, lock = resharder.advance, Lock()
    failed: list[float] = []

    def fails(key: str) -> Any:
        if key == partition(Thing).key:
            with lock:
                failed.append(world.clock.now)
            raise RuntimeError("a mistake of the programmer")
        return advance(key)

    resharder.advance = fails  # type: ignore[method-assign]
    logged: list[str] = []
    rounds = iter(range(400))
    drive(resharder, stop=lambda: next(rounds, None) is None, sleep=leap(world), log=logged.append)

    assert world.resharder.status(partition(Old)).count == 8
    pauses = [later - earlier for earlier, later in pairwise(failed)]
    assert len(pauses) > 6
    assert pauses[-1] >= 60 > pauses[0]
    assert len(logged) == len(failed)
    assert "move.v1.Thing:abc" in logged[0]


def test_a_resize_that_no_other_try_cures_is_paused_with_the_reason(world: Moving) -> None:
    world.fill(Thing, 30)
    broken = partition(Thing, "abc").key
    world.resharder.start(whole(Thing), 8)
    record = {"partition": {"S": broken}, "number_of_shards": {"S": "four"}}
    world.inner.call("PutItem", {"TableName": world.topology, "Item": record})
    rounds = iter(range(2000))

    def stop() -> bool:
        now = next(rounds, None)
        return now is None or world.resharder.status(whole(Thing)).paused

    drive(world.on(world.inner), stop=stop, sleep=leap(world))

    failed = world.resharder.status(whole(Thing))
    assert failed.paused
    assert broken in (failed.error or "")

    world.inner.call("DeleteItem", {"TableName": world.topology, "Key": {"partition": {"S": broken}}})
    world.resharder.resume(whole(Thing))
    run(world, world.on(world.inner))

    assert world.resharder.status(whole(Thing)).count == 8


def test_a_paused_resize_waits_for_its_resumption(world: Moving) -> None:
    world.fill(Thing, 10)
    world.resharder.start(partition(Thing), 8)
    world.resharder.pause(partition(Thing))
    rounds = iter(range(300))

    def stop() -> bool:
        now = next(rounds)
        if now == 100:
            assert world.resharder.status(partition(Thing)).stage == "pending"
            world.resharder.resume(partition(Thing))
        return now > 100 and world.resharder.poll() == []

    drive(world.on(world.inner), stop=stop, sleep=leap(world))

    assert world.resharder.status(partition(Thing)).count == 8


def test_a_stopped_worker_is_continued_by_another(world: Moving) -> None:
    world.fill(Thing, 40)
    world.resharder.start(partition(Thing), 8)

    for rounds in range(4, 400, 3):
        left = iter(range(rounds))
        drive(world.on(world.inner), stop=lambda left=left: next(left, None) is None, sleep=leap(world))  # type: ignore[misc]
        if world.resharder.poll() == []:
            break

    assert world.resharder.status(partition(Thing)).count == 8
    assert (world.misplaced(Thing, 8), world.marks()) == ([], [])
