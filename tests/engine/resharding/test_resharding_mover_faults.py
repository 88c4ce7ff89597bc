"""The mover and the sweeper under faults, kills, and each other."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pytest

from dynashard.errors import ReshardRefusedError
from dynashard.resharding import Resharder
from dynashard.schema import MOVED_FROM, PK, SK
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, repeated, throttled
from tests.depth import profile
from tests.engine.resharding.mover_world import Killed, Mortal, in_move, move_all
from tests.engine.resharding.resharding_world import ABC, WAIT, Moving, Old, Thing, partition

pytestmark = pytest.mark.engine

EVERY: Final = 1 if profile() == "deep" else 4
"""Of how many requests one kills its worker."""


def whole_life(world: Moving, resharder: Resharder, name: str) -> None:
    """Request a resize, and advance it to its end."""
    scope = partition(Old, name)
    with suppress(ReshardRefusedError):
        resharder.start(scope, 2, survey=False)
    world.finish(scope, resharder)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
def test_a_resize_killed_at_any_request_is_continued_by_another_worker(world: Moving, answered: bool) -> None:  # noqa: FBT001 - a parameter
    fields: dict[str, Any] = {"tenant": {"S": "x"}, "text": {"S": ""}}
    deaths = 0
    for request in range(1, 200, EVERY):
        name = f"p{request}"
        for n in range(3):
            world.put({PK: {"S": f"move.v1.Old:{name}"}, SK: {"S": f"{n}"}, "id": {"S": f"{n}"}, **fields})
        try:
            whole_life(world, world.on(Mortal(world.inner, request, answered=answered)), name)
        except Killed:
            deaths += 1
            whole_life(world, world.resharder, name)
        else:
            break

    assert deaths > 30 / EVERY
    places = world.places(Old)
    assert len(places) == 3 * (deaths + 1)
    assert world.misplaced(Old, 2) == []
    assert (world.marks(), world.resharder.poll()) == ([], [])


def test_two_movers_that_read_the_same_items_move_them_once(world: Moving) -> None:
    world.fill(Thing, 30)
    in_move(world)
    other = world.on(world.inner)

    # The second mover moves all items that the first one has read before the first one does.
    first = world.new([meanwhile("TransactWriteItems", lambda: move_all(world, other))])
    move_all(world, first)
    world.finish(ABC)

    assert world.misplaced(Thing, 8) == []
    assert sum(len(places) for places in world.places(Thing).values()) == 30
    assert world.marks() == []


def test_two_concurrent_sweepers_do_no_harm(world: Moving) -> None:
    world.fill(Thing, 30)
    world.resharder.start(ABC, 8)
    world.until(ABC, "sweep")
    world.clock.now += WAIT
    other = world.on(world.inner)

    move_all(world, world.new([meanwhile("DeleteItem", lambda: move_all(world, other))]))

    assert world.marks() == []
    assert world.misplaced(Thing, 8) == []


@pytest.mark.parametrize(
    "fault",
    [
        throttled("TransactWriteItems", nth=None),
        conflict("TransactWriteItems", nth=None),
        lost_request("TransactWriteItems", nth=None),
        throttled("Query", nth=None),
    ],
    ids=["throttled", "conflict", "lost", "throttled reading"],
)
def test_a_throttled_mover_returns_early_and_continues_later(world: Moving, fault: Any) -> None:
    world.fill(Thing, 10)
    in_move(world)
    before = world.clock.now

    complete = world.new([fault]).work(ABC.key, 0, seconds=5)

    assert complete is False
    assert 5 <= world.clock.now - before < 10
    assert world.marks() == []
    assert world.finish(ABC).count == 8
    assert world.misplaced(Thing, 8) == []


def test_a_throttled_mover_does_not_read_its_items_again(world: Moving) -> None:
    world.fill(Thing, 12)
    in_move(world)

    move_all(world, world.new([throttled("TransactWriteItems", nth=2)]))

    reads = [call.request["RequestItems"] for call in world.faulty.calls if call.operation == "BatchGetItem"]
    assert world.faulty.waiting == []
    assert [each for each in reads if world.table in each] == []
    assert world.finish(ABC).count == 8
    assert world.misplaced(Thing, 8) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("nth", [1, 2, 5])
@pytest.mark.parametrize("fault", [throttled, conflict, lost_request, lost_answer, repeated], ids=lambda f: f.__name__)
def test_a_mover_survives_any_single_fault(world: Moving, fault: Callable[..., Any], nth: int) -> None:
    world.fill(Thing, 12)
    in_move(world)

    faulty = world.new([fault("TransactWriteItems", nth=nth)])
    move_all(world, faulty)

    assert world.faulty.waiting == []
    assert len(world.marks()) == sum(1 for item in world.raw() if MOVED_FROM in item)
    assert world.finish(ABC).stage == "stable"
    assert world.misplaced(Thing, 8) == []


@pytest.mark.parametrize("fault", [throttled, lost_request, lost_answer], ids=lambda f: f.__name__)
def test_a_mover_goes_on_if_it_cannot_read_what_a_write_without_an_answer_left(
    world: Moving, fault: Callable[..., Any]
) -> None:
    world.fill(Thing, 12)
    in_move(world)
    reads_items = replace(fault("BatchGetItem", nth=None), text=f'"{world.table}"')

    move_all(world, world.new([lost_answer("TransactWriteItems"), reads_items]))

    assert world.faulty.waiting == []
    assert world.finish(ABC).stage == "stable"
    assert world.misplaced(Thing, 8) == []


@pytest.mark.parametrize("fault", [throttled, conflict, lost_request, lost_answer], ids=lambda f: f.__name__)
def test_a_sweeper_survives_any_single_fault(world: Moving, fault: Callable[..., Any]) -> None:
    world.fill(Thing, 12)
    world.resharder.start(ABC, 8)
    world.until(ABC, "sweep")
    world.clock.now += WAIT

    move_all(world, world.new([fault("DeleteItem", nth=2)]))

    assert world.marks() == []
    assert world.finish(ABC).stage == "stable"
