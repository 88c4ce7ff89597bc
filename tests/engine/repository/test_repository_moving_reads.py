"""Reads of moving keys: partly visible transactions, markers, and phases that change behind them."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import TransactionConflictError, UnprocessedError
from dynashard.testing.faults import Fault, conflict, meanwhile, unprocessed
from dynashard.topology import Phase, View
from tests.engine.repository.moving_things import IDENTITY, Spot
from tests.engine.stored_things import World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEY = {"tenant": "abc", "id": IDENTITY}
PARTITION = "test.v1.Note:abc"


@pytest.fixture
def spot(world: World) -> Spot:
    """A note that goes from 4 to 8 shards, in the move phase."""
    spot = Spot(world, 4, 8)
    spot.enter(Phase.MOVE)
    return spot


def half_seen(spot: Spot) -> None:
    """Make the marker of a mover's transaction visible, but not yet the item at its new home."""
    spot.put_live(spot.old, MovedTo={"N": "8"})


READS: dict[str, Callable[[World], bool]] = {
    "get": lambda world: world.notes.get(KEY).text == "was",
    "find": lambda world: world.notes.find(KEY) is not None,
    "exists": lambda world: world.notes.exists(KEY),
    "part": lambda world: world.notes.part(KEY, fields=["text"]).values == {"text": "was"},
    "batch_get": lambda world: world.notes.batch_get([KEY, {"tenant": "abc", "id": "none"}])[0] is not None,
}
READING = pytest.mark.parametrize("read", READS.values(), ids=READS)


@READING
@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.MOVE])
def test_an_item_of_a_partly_visible_transaction_is_found(
    world: World, spot: Spot, phase: Phase, read: Callable[[World], bool]
) -> None:
    half_seen(spot)
    spot.enter(phase)
    transport = world.faults(
        conflict("TransactGetItems"), meanwhile("TransactGetItems", lambda: spot.put_live(spot.new), nth=2)
    )

    assert read(world)

    assert transport.waiting == []
    assert len(world.pauses) == 1


@READING
def test_an_old_copy_that_is_still_live_is_read(world: World, spot: Spot, read: Callable[[World], bool]) -> None:
    half_seen(spot)
    transport = world.faults(meanwhile("TransactGetItems", lambda: spot.put_live(spot.old)))

    assert read(world)

    assert transport.waiting == []


def test_a_confirmation_that_always_conflicts_raises(world: World, spot: Spot) -> None:
    half_seen(spot)
    world.faults(conflict("TransactGetItems", nth=None))

    with pytest.raises(TransactionConflictError):
        world.notes.find(KEY)
    with pytest.raises(UnprocessedError) as left:
        world.notes.batch_get([KEY])

    assert left.value.details == {"keys": [KEY]}
    assert world.throttles == []


@READING
def test_read_starts_again_when_the_phase_changes_behind_a_mark(
    world: World, spot: Spot, read: Callable[[World], bool]
) -> None:
    spot.put_mark()

    def settled_and_changed_back() -> None:
        spot.put_live(spot.old)
        spot.clear(spot.new)
        world.views.now = View(4)

    asked: list[int] = []

    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        answer = send(request)
        if not asked:
            settled_and_changed_back()
        asked.append(1)
        return answer

    first = "BatchGetItem" if read is READS["batch_get"] else "GetItem"
    transport = world.faults(Fault(first, strike))

    assert read(world)

    assert transport.sent("TransactGetItems") == 0
    assert world.views.refreshed == [PARTITION]


def test_a_marker_behind_a_marker_is_read_again_until_the_deadline(world: World, spot: Spot) -> None:
    spot.put_mark()
    spot.put(spot.new, MovedTo={"N": "4"})

    with pytest.raises(TransactionConflictError):
        world.notes.find(KEY)

    assert 15 < sum(world.pauses) <= 20


def test_a_batch_read_that_outlasts_its_lease_follows_the_new_phase(world: World, spot: Spot) -> None:
    spot.put_live(spot.old)

    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        answer = unprocessed("BatchGetItem", keep=1).strike(send, request)
        spot.move()
        spot.clear(spot.old)
        spot.enter(Phase.SETTLE)
        return answer

    world.faults(Fault("BatchGetItem", strike))

    [found] = world.notes.batch_get([KEY])

    assert found is not None
