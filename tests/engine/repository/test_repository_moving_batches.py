"""Batches of moving keys: leases that end in between, single writes, and unprocessed keys."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import ThrottledError, UnprocessedError
from dynashard.testing.faults import Fault, conflict, throttled, unprocessed
from dynashard.topology import Phase
from dynashard.transport import metered
from tests.engine.faces import Meeting
from tests.engine.repository.moving_things import IDENTITY, Spot
from tests.engine.stored_things import Note, World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEY = {"tenant": "abc", "id": IDENTITY}
PARTITION = "test.v1.Note:abc"


def note(text: str = "new") -> Note:
    return Note(tenant="abc", id=IDENTITY, text=text)


@pytest.fixture
def spot(world: World) -> Spot:
    """A note that goes from 4 to 8 shards, in the move phase."""
    spot = Spot(world, 4, 8)
    spot.enter(Phase.MOVE)
    return spot


def test_a_batch_that_outlasts_its_lease_follows_the_new_phase(world: World, spot: Spot) -> None:
    notes = [Note(tenant="abc", id=str(number), text="new") for number in range(10)]
    spot.enter(Phase.STABLE)

    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        answer = unprocessed("BatchWriteItem", keep=9).strike(send, request)
        spot.put_live(spot.old)
        spot.move()
        spot.enter(Phase.MOVE)
        return answer

    transport = world.faults(Fault("BatchWriteItem", strike, nth=None))

    world.notes.batch_write(put=notes)

    assert transport.sent("BatchWriteItem") == 1
    found = world.notes.batch_get([{"tenant": "abc", "id": str(number)} for number in range(10)])
    assert [item and item.text for item in found] == ["new"] * 10
    assert "MovedTo" in (spot.at(spot.old) or {})


def test_a_large_batch_of_single_writes_is_completed(world: World, spot: Spot) -> None:
    spot.enter(Phase.MOVE)
    keys = [{"tenant": "abc", "id": str(number)} for number in range(60)]
    world.notes.batch_write(put=[Note(**each, text="was") for each in keys[:40]])
    transport = world.faults(throttled("TransactWriteItems", nth=3), conflict("UpdateItem", nth=5))

    world.notes.batch_write(put=[Note(**each, text="new") for each in keys[20:]], delete=keys[:20])

    found = world.notes.batch_get(keys)
    assert transport.waiting == []
    assert [item and item.text for item in found] == [None] * 20 + ["new"] * 40
    assert transport.sent("BatchWriteItem") == 0
    assert len(world.pauses) == 1


def test_unprocessed_keys_of_a_batch_of_single_writes_are_named(world: World, spot: Spot) -> None:
    spot.enter(Phase.MOVE)
    world.faults(throttled("TransactWriteItems", nth=None))

    with pytest.raises(UnprocessedError) as left:
        world.notes.batch_write(put=[note(), Note(tenant="abc", id="3")])

    assert left.value.details == {"keys": [KEY]}
    assert isinstance(left.value.__cause__, ThrottledError)
    assert world.notes.batch_get([{"tenant": "abc", "id": "3"}]) != [None]
    assert [(entity, partition) for entity, partition, _ in world.throttles] == [("test.v1.Note", PARTITION)]


def test_large_items_are_written_moved_and_confirmed_absent(world: World, spot: Spot) -> None:
    movers = [Spot(world, 4, 8, identity=str(number)) for number in range(40)]
    movers = [each for each in movers if each.old != each.new][:7]
    spot.enter(Phase.PREPARE)
    for each in movers:
        empty = Note(**each.key)
        world.notes.create(empty)
        stored = world.notes.get(each.key)
        size = 400 * 1024 - 64 - len(each.old) - len(each.identity) - 200
        world.notes.update(stored, set={"text": "x" * size})
        each.move()
    spot.enter(Phase.MOVE)

    found = world.notes.batch_get([each.key for each in movers])
    assert all(item is not None and len(item.text) > 409_000 for item in found)
    world.notes.batch_write(delete=[each.key for each in movers])
    transport = world.faults()

    assert world.notes.batch_get([each.key for each in movers]) == [None] * 7
    confirmations = [call for call in transport.calls if call.operation == "TransactGetItems"]
    assert [len(call.request["TransactItems"]) for call in confirmations] == [10, 4]


def test_single_writes_of_a_batch_go_several_at_a_time(world: World, spot: Spot) -> None:
    spot.enter(Phase.SETTLE)
    together = Meeting(2)
    world.batch_concurrency = 2
    world.faults(Fault("TransactWriteItems", lambda send, request: (together.joined(), send(request))[1], nth=None))
    keys = [{"tenant": "abc", "id": each} for each in ("1", "2", "4", "6")]
    assert all(each.old != each.new for each in (Spot(world, 4, 8, identity=each["id"]) for each in keys[:2]))

    with metered() as meter:
        world.notes.batch_write(put=[Note(**each) for each in keys[:2]])

    assert None not in world.notes.batch_get(keys[:2])
    assert meter.consumed.write_units == 8
