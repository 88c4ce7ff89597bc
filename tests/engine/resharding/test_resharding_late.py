"""Items stored at an old home after the mover has passed: the second pass, the sweep and the check."""

from contextlib import suppress
from typing import Any

import pytest

from dynashard.resharding import Resharder, Scope
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, throttled
from tests.engine.repository.late_world import client, things
from tests.engine.resharding.mover_world import Killed, Mortal, at_home, strays
from tests.engine.resharding.resharding_world import ABC, WAIT, Moving, Old, Thing, partition, whole

pytestmark = pytest.mark.engine


RESIZES: dict[str, tuple[Scope, type[Thing | Old], int, int]] = {
    "growing": (ABC, Thing, 4, 8),
    "shrinking": (ABC, Thing, 4, 2),
    "family": (whole(Thing), Thing, 4, 16),
    "adoption": (partition(Old), Old, 0, 4),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("stage", ["settle", "sweep"])
def test_an_item_stored_late_is_moved_home(world: Moving, resize: str, stage: str) -> None:
    scope, model, old, new = RESIZES[resize]
    late = strays(model, old, new)
    world.resharder.start(scope, new)
    world.until(scope, stage)
    for item in late:
        world.put(item)

    if stage == "settle":
        world.until(scope, "sweep")
        # No client reads old homes from now on.
        assert all(world.of(model).find({"tenant": "abc", "id": item[SK]["S"]}) for item in late)
    status = world.finish(scope)

    assert (status.late, status.left, status.swept) == (3, 0, True)
    assert [model.__name__ for item in late if not world.of(model).find({"tenant": "abc", "id": item[SK]["S"]})] == []
    assert (world.misplaced(model, new), world.marks()) == ([], [])


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_listing_in_settle_asks_for_no_item_whose_home_it_reads_later(world: Moving, direction: str) -> None:
    world.fill(Thing, 60)
    world.resharder.start(ABC, 8)
    world.until(ABC, "settle")
    db = client(world)
    items = [item for page in things(db).pages({"tenant": "abc"}, limit=5, direction=direction) for item in page.items]

    wire: Any = db.store.transport
    assert len(items) == 60
    assert wire.sent("TransactGetItems") == 0


def test_the_second_pass_begins_when_no_client_is_in_the_move_phase_any_more(world: Moving) -> None:
    [late] = strays(Thing, 4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    world.put(late)
    published = world.record(ABC.key).since

    for seconds in (0.0, WAIT - 0.01):
        world.clock.now = published + seconds
        assert world.resharder.advance(ABC.key).kind == "wait"
        assert all(world.resharder.work(ABC.key, task, seconds=60) for task in range(4))
        assert world.raw() == [late]
    world.clock.now = published + WAIT
    step = world.resharder.advance(ABC.key)

    assert (step.kind, step.tasks) == ("work", (0, 1, 2, 3))
    assert world.record(ABC.key).phase.value == "settle"


def test_an_item_whose_home_is_taken_is_left_and_reported(world: Moving) -> None:
    first, second = strays(Thing, 4, 8, 2)
    world.resharder.start(ABC, 8)
    world.until(ABC, "sweep")
    world.put(first)
    world.put({**at_home(first, Thing, 8), REV: {"S": "newer"}})
    world.put(second)

    status = world.finish(ABC)

    assert (status.late, status.left, status.error) == (1, 1, None)
    revisions = sorted(item[REV]["S"] for item in world.raw() if item[SK] == first[SK])
    assert revisions == sorted([first[REV]["S"], "newer"])
    assert world.marks() == []


def test_an_expired_item_that_was_stored_late_is_deleted(world: Moving) -> None:
    [late] = strays(Thing, 4, 8, 1)
    world.resharder.start(ABC, 8)
    world.until(ABC, "sweep")
    world.put({**late, EXPIRES_AT: {"N": str(int(world.clock.now) - 600)}})

    world.finish(ABC)

    assert world.raw() == []


def test_a_late_item_changed_meanwhile_moves_in_its_new_state(world: Moving) -> None:
    [late] = strays(Thing, 4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "settle")
    world.put(late)
    newer = {**late, REV: {"S": "newer"}, "text": {"S": "newer"}}

    world.finish(ABC, world.new([meanwhile("TransactWriteItems", lambda: world.put(newer))]))

    [item] = world.raw()
    assert (item[PK], item[REV]) == (at_home(late, Thing, 8)[PK], {"S": "newer"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [throttled, conflict, lost_request, lost_answer], ids=lambda f: f.__name__)
@pytest.mark.parametrize("stage", ["settle", "sweep"])
def test_moving_late_items_home_survives_any_single_fault(world: Moving, fault: object, stage: str) -> None:
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, stage)
    for item in strays(Thing, 4, 8):
        world.put(item)

    world.finish(ABC, world.new([fault("TransactWriteItems", nth=1)]))  # type: ignore[operator]

    assert len(world.places(Thing)) == 3
    assert (world.misplaced(Thing, 8), world.marks()) == ([], [])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stage", ["settle", "sweep"])
def test_a_worker_killed_at_any_request_is_continued_by_another_one(world: Moving, stage: str, answered: bool) -> None:  # noqa: FBT001
    deaths = 0
    for request in range(1, 200):
        scope = partition(Old, f"p{request}")
        late = strays(Old, 0, 2, name=f"p{request}")
        world.resharder.start(scope, 2, survey=False)
        world.until(scope, stage)
        for item in late:
            world.put(item)
        try:
            world.finish(scope, world.on(Mortal(world.inner, request, answered=answered)))
        except Killed:
            deaths += 1
            world.finish(scope)
        else:
            break

    assert deaths > 8
    assert len(world.places(Old)) == 3 * (deaths + 1)
    assert (world.misplaced(Old, 2), world.marks(), world.resharder.poll()) == ([], [], [])


# Late items before the next resize.


@pytest.mark.parametrize("count", [2, 8], ids=["growing", "shrinking"])
def test_items_at_a_future_home_are_moved_home_before_a_resize_begins(world: Moving, count: int) -> None:
    """Items were stored after the last sweep, at a home under the count to which the partition now returns."""
    to = 4
    world.resize(ABC, count)
    late = strays(Thing, to, count)
    for item in late:
        world.put(item)
    marker = {**{name: strays(Thing, to, count, 4)[3][name] for name in (PK, SK)}, MOVED_TO: {"N": str(count)}}
    world.put(marker)

    world.resharder.start(ABC, to, survey=False)
    world.until(ABC, "prepare")

    assert world.misplaced(Thing, count) == []
    assert (len(world.places(Thing)), world.marks()) == (3, [])
    assert world.finish(ABC).count == to
    assert world.misplaced(Thing, to) == []


def test_a_resize_does_not_begin_while_two_items_have_the_same_key(world: Moving) -> None:
    [late] = strays(Thing, 4, 8, 1)
    world.resize(ABC, 8)
    world.put(late)
    world.put(at_home(late, Thing, 8))
    world.resharder.start(ABC, 4)

    with suppress(AssertionError):
        world.until(ABC, "prepare")
    status = world.resharder.status(ABC)

    assert (status.stage, status.paused) == ("pending", True)
    assert late[PK]["S"] in (status.error or "")
    world.resharder.abort(ABC)
    assert world.finish(ABC).count == 8
    assert len(world.raw()) == 2


def test_a_family_is_checked_only_after_a_resize_that_met_late_items(world: Moving) -> None:
    scope = whole(Thing)

    def works_before(resharder: Resharder, to: int) -> bool:
        resharder.start(scope, to, survey=False)
        return resharder.advance(scope.key).kind == "work"

    first = works_before(world.resharder, 8)
    world.until(scope, "sweep")
    world.put(strays(Thing, 4, 8, 1)[0])
    world.finish(scope)
    second = works_before(world.resharder, 4)
    world.finish(scope)
    third = works_before(world.resharder, 2)

    assert (first, second, third) == (False, True, False)
