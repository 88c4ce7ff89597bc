"""An entity is declared `epochs` while a resize moves its items: that resize ends as it began, and epochs follow."""

from collections.abc import Callable

import pytest

from dynashard.errors import ConfigurationError, ReshardRefusedError
from dynashard.resharding import Resharder
from tests.engine.epochs.epochs_world import Epochs, Event, declared, partition
from tests.engine.epochs.test_epochs_clock import Dated

pytestmark = pytest.mark.engine

CALCULATED = declared("calculated")
KEY = partition().key


def begun(world: Epochs, phase: str) -> list[str]:
    """Store items of calculated placement, and resize them to 4 shards up to a phase; return their ids."""
    events = world.process().collection(CALCULATED)
    made = [events.create(tenant="abc", id=world.id(), n=n).id for n in range(30)]
    world.written |= {each: n for n, each in enumerate(made)}
    resharder = world.resharder(entities=[CALCULATED])
    resharder.start(partition(model=CALCULATED), 4)
    carried(world, resharder, lambda: world.record().phase.value == phase)
    return made


def carried(world: Epochs, resharder: Resharder, until: Callable[[], bool] = lambda: False) -> None:
    """Carry a resize out until something holds, or until it has ended."""
    for _ in range(60):
        if until() or (step := resharder.advance(KEY)).kind == "done":
            return
        for task in step.tasks:
            resharder.work(KEY, task, seconds=60.0)
        world.clock.now += step.seconds
    raise AssertionError(f"never ended: {resharder.status(partition())}")


def at_home(world: Epochs) -> bool:
    """Whether every item that was written is found, listed once, and stands where its key belongs."""
    events = world.process().collection(Event)
    found = {event.id: event.n for event in events.scan(tenant="abc")}
    listed = [event.id for event in events.items(tenant="abc", order="ordered", limit=7)]
    read = all(events.get(tenant="abc", id=each).n == n for each, n in world.written.items())
    return read and found == world.written and listed == sorted(world.written)


def test_an_epoch_under_way_needs_the_declaration_that_it_began_with(world: Epochs) -> None:
    world.process().collection(Event).find(tenant="abc", id=world.id())
    world.resharder().start(partition(), 4)

    with pytest.raises(ConfigurationError, match=r'declare Shards\(\.\.\., placement="epochs"\) again'):
        world.resharder(entities=[CALCULATED]).advance(KEY)


@pytest.mark.parametrize("phase", ["stable", "prepare", "move", "settle"])
def test_a_resize_that_moves_items_ends_under_the_newer_declaration(world: Epochs, phase: str) -> None:
    begun(world, phase)
    # Each was the last one to learn of the phase.
    writers = [world.process() for _ in range(3)]
    resharder = world.resharder()

    with pytest.raises(ReshardRefusedError) as refused:
        resharder.start(partition(), 16)
    assert refused.value.reason == "running"
    world.write(writers[0], 5)
    world.written |= {
        event.id: event.n
        for event in [Event(tenant="abc", id=world.id(), n=100 + n) for n in range(5)]
        if writers[1].collection(Event).try_batch_write([event]) == [None]
    }
    assert at_home(world)
    carried(world, resharder)

    world.write(writers[2], 5)
    assert (world.record().count, world.record().swept, world.record().epochs) == (4, True, ())
    assert len(world.written) == 45
    assert at_home(world)
    moved = world.raw()
    world.grow(16)
    world.clock.now += 1
    world.write(world.process(), 20)
    assert world.counts() == [(4, "confirmed"), (16, "confirmed")]
    assert moved.items() <= world.raw().items()
    assert at_home(world)


def test_such_a_resize_is_aborted_by_changing_back(world: Epochs) -> None:
    begun(world, "move")
    resharder = world.resharder()

    resharder.abort(partition())
    carried(world, resharder)

    assert (world.record().count, world.record().swept, world.shards()) == (1, True, {"0"})
    assert at_home(world)


def test_a_batch_is_not_sent_without_conditions_by_a_process_that_learns_of_the_resize(world: Epochs) -> None:
    begun(world, "stable")
    wire = Dated(world)
    events = world.process(transport=wire, runtime=wire.runtime).collection(Event)

    def prepares() -> bool:
        """Whether the phase is published; if not, the process has read its view just before."""
        published = world.record().phase.value == "prepare"
        return published or events.find(tenant="abc", id=world.id()) is not None

    carried(world, world.resharder(), prepares)

    # Its view is still stable. When the batch has read what it keeps, the process is frozen, so it asks again.
    wire.meanwhile.append(lambda: setattr(wire, "frozen", 2.0))
    events.batch_write([Event(tenant="abc", id=world.id(), n=7)])

    assert "PutItem" in [each.operation for each in wire.calls]
    assert "BatchWriteItem" not in [each.operation for each in wire.calls]
