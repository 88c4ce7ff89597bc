"""A process with a wrong clock writes nothing that is placed by time, loses nothing, and says so once in its log."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from dynashard import Dynashard
from dynashard.errors import ClockOffError
from dynashard.growth.opening import GrowthOptions
from dynashard.key_clock import ClockBounds
from dynashard.key_time import KSUID
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport
from dynashard.transactions import Check, Create, Delete, Put, Update
from dynashard.transport.attempts import Attempts
from dynashard.transport.clock_offset import ClockOffset, clock_offset_of
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.interface import Resend, Settings, Wire
from dynashard.transport.sdk import SdkTransport
from tests.engine.epochs.epochs_world import CLOCKS, KEYS, LEASE, Epochs, Event, partition

pytestmark = pytest.mark.engine

LOG = "dynashard.clock"


class Dated(FaultyTransport):
    """Answers have the true date, as DynamoDB's do, so that a process learns how far its clock is off.

    `off` may be set, as the clock may while the process runs. Each answer takes so many `seconds`, and the monotonic
    clock has stood still for the seconds of `frozen`. What others do `meanwhile` happens before the next requests.
    """

    def __init__(self, world: Epochs, off: float = 0.0) -> None:
        super().__init__(world.inner, [])
        self.off, self.seconds, self.frozen, self._world = off, 0.0, 0.0, world
        self.meanwhile: list[Callable[[], object]] = []
        self.runtime = Runtime(
            lambda: world.clock() + self.off, world.sleep, lambda: 0.5, lambda: world.clock() - self.frozen
        )
        self.clock_offset = ClockOffset(self.runtime)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        sent, half = self.runtime.clock(), self.seconds / 2
        self._world.clock.now += half
        if self.meanwhile:
            self.meanwhile.pop()()
        now = self._world.clock()
        answer = super().call(operation, request, resend=resend)
        self._world.clock.now += half
        dated = format_datetime(datetime.fromtimestamp(now, UTC), usegmt=True)
        self.clock_offset.observe(dated, sent, self.runtime.clock())
        return answer


def companion(_item: Any, _shards: int) -> Wire:
    return {"Put": {"TableName": "another table", "Item": {}}}


def every_write(db: Dynashard, world: Epochs, stored: Event) -> list[Callable[[], object]]:
    """Return all ways to write an event, each with a key of now or the one that is stored."""
    events, key = db.collection(Event), {"tenant": "abc", "id": stored.id}

    def new() -> Event:
        return Event(tenant="abc", id=world.id())

    return [
        *(
            lambda handling=handling, act=act: act(handling)
            for handling in ("plain", "guarded", "exactly-once")
            for act in (
                lambda handling: events.create(new(), handling=handling),
                lambda handling: events.put(new(), handling=handling),
                lambda handling: events.replace(stored, handling=handling),
                lambda handling: events.update(key, set={"n": 1000}, handling=handling),
                lambda handling: events.delete(key, handling=handling),
            )
        ),
        lambda: events.update(key, add={"n": 1000}),
        lambda: events.put(stored.model_copy(update={"n": 1000}), over=stored),
        lambda: events.batch_write([new()]),
        lambda: events.batch_write([new()], whole=True),
        lambda: events.batch_write(delete=[key]),
        lambda: events.create_with(new(), companion),
        *(
            lambda step=step: db.transact(step)
            for step in (
                Create(new()),
                Put(new()),
                Update(Event, key, set={"n": 1000}),
                Delete(Event, key),
            )
        ),
        lambda: db.transact(Create(new()), Check(Event, key, stored.revision or "")),
    ]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_clock_that_is_off_by_more_than_the_bound_writes_nothing_and_loses_nothing(
    world: Epochs, caplog: pytest.LogCaptureFixture, sign: int
) -> None:
    world.write(world.process(), 3)
    world.grow(4)
    world.clock.now += 1
    [latest, *_] = world.write(world.process(), 3)
    before = world.raw()
    wrong = Dated(world, sign * (CLOCKS.off + 1.5))
    db = world.process(wrong.off, wrong)
    events = db.collection(Event)
    stored = events.get(tenant="abc", id=latest)
    caplog.set_level(logging.WARNING, LOG)

    refused = 0
    for write in every_write(db, world, stored):
        with pytest.raises(ClockOffError) as error:
            write()
        refused += error.value.retryable
    outcomes = events.try_batch_write([Event(tenant="abc", id=world.id()), Event(tenant="abc", id=world.id())])

    assert refused == len(every_write(db, world, stored))
    assert all(isinstance(each, ClockOffError) for each in outcomes)
    assert world.raw() == before
    assert {event.id: event.n for event in events.scan(tenant="abc")} == world.written
    assert all(events.get(tenant="abc", id=each).n == n for each, n in world.written.items())
    assert [(each.name, each.levelname) for each in caplog.records] == [(LOG, "WARNING")]
    assert f"s {'ahead' if sign > 0 else 'behind'}, and at most 2 s are allowed" in caplog.text


def test_a_clock_that_was_right_in_between_is_in_the_log_again(world: Epochs, caplog: pytest.LogCaptureFixture) -> None:
    wire = Dated(world, 60.0)
    db = world.process(transport=wire)
    caplog.set_level(logging.WARNING, LOG)

    def refusals() -> int:
        db.collection(Event).find(tenant="abc", id="0")
        with suppress(ClockOffError):
            world.write(db)
        world.clock.now += 100
        return len(caplog.records)

    first = [refusals(), refusals()]
    wire.off = 0.0
    right = refusals()
    wire.off = 60.0

    assert (first, right, refusals(), refusals()) == ([1, 1], 1, 2, 2)


def test_the_bounds_of_a_database_are_those_of_its_resizes(world: Epochs) -> None:
    resharder = Dynashard(
        world.inner,
        table=world.table,
        topology_table=world.topology,
        cursor_keys=KEYS,
        lease=LEASE,
        runtime=world.runtime(),
        clocks=ClockBounds(off=20.0, ahead=100.0),
        growth=GrowthOptions(entities=[Event]),
    ).resharder()
    now = world.clock()

    resharder.start(partition(), 4)

    begins = KSUID.moment_of(world.record().epochs[-1].first)
    assert begins == pytest.approx(now + LEASE + 2 * 20.0 + 100.0 + 4 * 20.0 + 5.0, abs=1)


def test_the_first_write_of_a_process_whose_clock_is_off_is_refused(world: Epochs) -> None:
    wire = Dated(world, 60.0)
    events = world.process(60.0, transport=wire).collection(Event)

    with pytest.raises(ClockOffError):
        events.create(tenant="abc", id=world.id())

    assert world.raw() == {}


def test_a_process_that_only_writes_learns_that_its_clock_is_right_again(world: Epochs) -> None:
    wire = Dated(world, 60.0)
    events = world.process(transport=wire).collection(Event)
    for _ in range(5):
        with pytest.raises(ClockOffError):
            events.create(tenant="abc", id=world.id())
    asked = len(wire.calls)

    wire.off = 0.0
    world.clock.now += 1.0
    created = events.create(tenant="abc", id=world.id())

    # While it is refused it asks about once a second, not with each write.
    assert asked <= 4
    assert set(world.raw()) == {created.id}


@pytest.mark.parametrize("seconds", [-20.0, 4.0, 600.0])
def test_a_clock_that_is_set_while_the_process_runs_writes_nothing(world: Epochs, seconds: float) -> None:
    wire = Dated(world)
    db = world.process(transport=wire, runtime=wire.runtime)
    world.write(db)
    world.clock.now += 25.0

    wire.off = seconds
    with pytest.raises(ClockOffError):
        world.write(db, at=wire.runtime.clock() + CLOCKS.ahead - 1)

    assert set(world.raw()) == set(world.written)


def test_a_clock_that_is_set_back_denies_no_recent_item(world: Epochs) -> None:
    world.grow(4)
    world.clock.now += 1.0
    wire = Dated(world)
    events = world.process(transport=wire, runtime=wire.runtime).collection(Event)
    events.find(tenant="abc", id=world.id())
    world.clock.now += 25.0
    [written] = world.write(world.process())

    wire.off = -20.0

    with pytest.raises(ClockOffError):
        events.find(tenant="abc", id=written)
    wire.off = 0.0
    assert events.get(tenant="abc", id=written)


def test_a_key_is_judged_after_the_answer_with_the_view_that_places_it(world: Epochs) -> None:
    wire = world.dated(0.0)
    clock = Dated(world)
    events = world.process(transport=wire, runtime=clock.runtime).collection(Event)
    events.create(tenant="abc", id=world.id())

    # This transport does not notice that the clock is set, but the view ends by it.
    wire.off = clock.off = 600.0

    with pytest.raises(ClockOffError):
        events.create(tenant="abc", id=world.id(world.clock() + 602))
    assert len(world.raw()) == 1


def test_a_process_that_was_frozen_asks_once_how_late_it_is(world: Epochs) -> None:
    wire = Dated(world)
    db = world.process(transport=wire, runtime=wire.runtime)
    world.write(db)
    world.clock.now += 20.0
    wire.frozen = 19.0
    before = len(wire.calls)

    world.write(db, 3)

    assert len(wire.calls) == before + 4


def test_a_key_is_placed_by_the_view_that_was_read_while_its_process_asked(world: Epochs) -> None:
    wire = Dated(world)
    db = world.process(transport=wire, runtime=wire.runtime)
    world.write(db)
    world.resharder().start(partition(), 64)
    wire.frozen = 2.0
    wire.meanwhile.append(world.finish)
    before = len(wire.calls)

    # So late will it be, nearly, when the process has asked.
    [written] = world.write(db, at=world.clock() + 51)

    assert [each.operation for each in wire.calls[before:]].count("PutItem") == 1
    assert "TransactWriteItems" not in [each.operation for each in wire.calls[before:]]
    assert world.process().collection(Event).get(tenant="abc", id=written)


@pytest.mark.parametrize("off", [-2.9, 2.9])
def test_slow_answers_do_not_hide_a_clock_that_is_off(world: Epochs, off: float) -> None:
    wire = Dated(world, off)
    wire.seconds = 1.4
    db = world.process(transport=wire, runtime=wire.runtime)

    with pytest.raises(ClockOffError):
        world.write(db, at=wire.runtime.clock())

    assert world.raw() == {}
    assert len(wire.calls) <= 2 + 2 * 2


def test_after_a_slow_answer_a_process_asks_again(world: Epochs) -> None:
    wire = Dated(world)
    wire.seconds = 5.0
    db = world.process(transport=wire, runtime=wire.runtime)
    db.collection(Event).find(tenant="abc", id=world.id())
    assert wire.clock_offset.exceeds(CLOCKS.off)
    wire.seconds = 0.0

    world.write(db)

    assert set(world.raw()) == set(world.written)


def test_a_process_whose_answers_stay_slow_says_by_how_much_its_clock_may_be_off(world: Epochs) -> None:
    wire = Dated(world)
    wire.seconds = 8.0
    db = world.process(transport=wire, runtime=wire.runtime)

    with pytest.raises(ClockOffError, match=r"this process's clock may be \d.\d s (ahead|behind), and at most 2 s"):
        world.write(db)


@pytest.mark.parametrize("transport", ["direct", "botocore"])
def test_an_answer_late_in_a_second_is_taken_too(world: Epochs, engine_url: str, transport: str) -> None:
    settings, waited = Settings(engine_url, "us-east-1", "local", "local"), [0.0]
    attempts = Attempts(runtime=Runtime(lambda: Runtime().clock() + waited[0]))
    wire = SdkTransport(settings, attempts) if transport == "botocore" else transport_for(settings, {}, attempts)
    request = {"TableName": world.table, "Key": {"PK": {"S": "a"}, "SK": {"S": "b"}}}

    wire.call("GetItem", request)
    first = clock_offset_of(wire).again
    # Mostly the date is the same, because no time has passed.
    waited[0] = 0.9
    wire.call("GetItem", request)

    assert clock_offset_of(wire).again >= first + 0.9
    wire.close()


@pytest.mark.parametrize("transport", ["direct", "botocore"])
def test_the_next_answer_says_how_far_a_clock_was_set(world: Epochs, engine_url: str, transport: str) -> None:
    settings, off = Settings(engine_url, "us-east-1", "local", "local"), [0.0]
    attempts = Attempts(runtime=Runtime(lambda: Runtime().clock() + off[0]))
    wire = SdkTransport(settings, attempts) if transport == "botocore" else transport_for(settings, {}, attempts)
    request = {"TableName": world.table, "Key": {"PK": {"S": "a"}, "SK": {"S": "b"}}}
    wire.call("GetItem", request)

    off[0] = -60.0

    assert clock_offset_of(wire).outdated
    # Mostly the date is the same, because no time has passed.
    wire.call("GetItem", request)
    assert clock_offset_of(wire).seconds == pytest.approx(-60.0, abs=2)
    wire.close()
