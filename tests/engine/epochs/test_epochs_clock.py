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
    """Answers have the true date, as DynamoDB's do, so that a process learns how far its clock is off."""

    def __init__(self, world: Epochs, off: float) -> None:
        super().__init__(world.inner, [])
        self.clock_offset, self.off, self._world = ClockOffset(), off, world

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        now = self._world.clock()
        self.clock_offset.observe(format_datetime(datetime.fromtimestamp(now, UTC), usegmt=True), *[now + self.off] * 2)
        return super().call(operation, request, resend=resend)


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
