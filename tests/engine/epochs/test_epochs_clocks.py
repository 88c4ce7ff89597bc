"""A process learns from its answers that its clock is off: then it decides nothing that depends on the time of keys."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import ClockOffError
from tests.engine.epochs.epochs_world import CLOCKS, LEASE, Epochs, Event, partition

pytestmark = pytest.mark.engine

KEY = partition().key


@pytest.mark.parametrize("off", [-60.0, 60.0])
@pytest.mark.parametrize(
    "write",
    [
        lambda events, key: events.create(tenant="abc", id=key),
        lambda events, key: events.create(tenant="abc", id=key, handling="exactly-once"),
        lambda events, key: events.put(Event(tenant="abc", id=key)),
        lambda events, key: events.update(tenant="abc", id=key, set={"n": 1}),
        lambda events, key: events.delete(tenant="abc", id=key),
    ],
)
def test_the_very_first_request_of_a_process_whose_clock_is_off_writes_nothing(
    world: Epochs, off: float, write: Callable[[Any, str], object]
) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    events = world.process(off, world.dated(off)).collection(Event)

    with pytest.raises(ClockOffError) as refused:
        write(events, world.id(world.clock.now - 3600))

    assert refused.value.off == pytest.approx(off, abs=1)
    assert world.raw() == {}


def test_the_very_first_batch_of_a_process_whose_clock_is_off_writes_nothing(world: Epochs) -> None:
    events = world.process(60.0, world.dated(60.0)).collection(Event)

    [refused] = events.try_batch_write([Event(tenant="abc", id=world.id())])

    assert isinstance(refused, ClockOffError)
    assert world.raw() == {}


def test_a_reader_whose_clock_is_behind_does_not_deny_what_was_written_just_now(world: Epochs) -> None:
    db = world.process()
    [early] = world.write(db)
    world.clock.now += 100
    world.grow(4)
    world.clock.now += 1
    [late] = world.write(db)
    behind = world.process(-60.0, world.dated(-60.0)).collection(Event)

    assert behind.get(tenant="abc", id=early)
    with pytest.raises(ClockOffError):
        behind.find(tenant="abc", id=late)
    with pytest.raises(ClockOffError):
        behind.batch_get([{"tenant": "abc", "id": each} for each in (early, late)])
    assert sorted(each.id for each in behind.scan(tenant="abc")) == sorted([early, late])


def test_a_reader_whose_clock_is_right_says_that_a_key_of_the_future_does_not_exist(world: Epochs) -> None:
    world.grow(4)
    reader = world.process(0.0, world.dated(0.0)).collection(Event)

    assert reader.find(tenant="abc", id=world.id(world.clock.now + 3600)) is None


@pytest.mark.parametrize("off", [-45.0, 45.0])
def test_a_process_whose_clock_is_off_publishes_no_epoch(world: Epochs, off: float) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())

    with pytest.raises(ClockOffError):
        world.resharder(off, wire=world.dated(off)).start(partition(), 4)

    assert not world.resharder().status(partition()).epochs


@pytest.mark.parametrize("seen", [0, 1])
def test_a_process_whose_clock_is_off_neither_begins_the_wait_for_views_nor_ends_it(world: Epochs, seen: int) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    resharder = world.resharder()
    resharder.start(partition(), 4)
    if not seen:
        record = world.record()
        resize = {name: value for name, value in record.resize.items() if name != "seen"}
        unseen = record.revised(world.clock.now, resize=resize)
        resharder.topology.save((record, unseen))
    before = world.record()
    world.clock.now += LEASE + 2 * CLOCKS.off - 1

    for off in (-45.0, 45.0):
        with pytest.raises(ClockOffError):
            world.resharder(off, wire=world.dated(off)).advance(KEY)

    assert world.record() == before
    world.finish()
    assert world.counts()[-1] == (4, "confirmed")
