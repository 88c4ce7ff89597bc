"""A `Dynashard` grows by throttles on its own: it requests the resize, and a thread of the process carries it out."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from dynashard import Dynashard, Entity, Key, Registry, Shards, definition, new_id
from dynashard.errors import ConfigurationError, ThrottledError
from dynashard.growth.driving import BackgroundDriver
from dynashard.growth.opening import GrowthOptions
from dynashard.growth.settings import GrowthMode, GrowthSettings
from dynashard.resharding import Resharder, Scope
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, Send, throttled
from dynashard.transport import Transport, Wire
from tests.engine.topology.topology_world import Clock, topology_table_on
from tests.no_threads import no_more_threads
from tests.waiting import until

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

REGISTRY = Registry()
SETTINGS = GrowthSettings(most_minutes=600)


class Reading(Entity, name="own.v1.Reading", key=Key("{tenant}", "{id}"), shards=Shards(2, max=8), registry=REGISTRY):
    """An entity of a script."""

    tenant: str
    id: str = new_id()


SCOPE = Scope(definition(Reading), "own.v1.Reading:t")


class Script:
    """A program with tables of its own, whose key range is hot while `hot`. Its sleeps pass at once."""

    def __init__(self, inner: Transport, table: str, topology: str) -> None:
        self.clock, self.hot = Clock(), False
        self.inner, self.table, self.topology = inner, table, topology
        strike = throttled("PutItem").strike
        self.wire = FaultyTransport(
            inner,
            [Fault("PutItem", lambda send, put: strike(send, put) if self._concerns(put) else send(put), nth=None)],
        )
        self.runtime = Runtime(self.clock, self._leap, lambda: 0.5)

    def opened(self, growth: GrowthMode | GrowthOptions) -> Dynashard:
        return Dynashard(
            self.wire,
            table=self.table,
            topology_table=self.topology,
            cursor_keys=["a key of this test that is long enough"],
            runtime=self.runtime,
            growth=growth,
        )

    def throttle_twice(self, db: Dynashard) -> None:
        """Send two throttled creates, with the longest random wait between them."""
        self.hot = True
        for _ in range(2):
            with pytest.raises(ThrottledError):
                db.collection(Reading).create(Reading(tenant="t"))
            self.clock.now += 10
        self.hot = False

    @property
    def resharder(self) -> Resharder:
        """What an operator sees."""
        return self.resharder_on(self.inner)

    def resharder_on(self, transport: Transport) -> Resharder:
        return Resharder(
            transport,
            table=self.table,
            topology_table=self.topology,
            entities=[Reading],
            runtime=self.runtime,
        )

    def _concerns(self, put: object) -> bool:
        return self.hot and self.table in str(put)

    def _leap(self, seconds: float) -> None:
        self.clock.now += seconds


@pytest.fixture
def script(wire: Transport, table: str) -> Iterator[Script]:
    with topology_table_on(wire) as topology:
        script = Script(wire, table, topology)
        # The first request stores the declared count, and a count is left alone for a while after it has changed.
        script.opened("off").collection(Reading).list(tenant="t")
        script.clock.now += 3600
        yield script


def options(**more: object) -> GrowthOptions:
    return GrowthOptions(settings=SETTINGS, entities=[Reading], **more)  # type: ignore[arg-type]


def driving() -> bool:
    """Whether a thread of this process carries resizes out."""
    return any(thread.name == "dynashard-resharding" for thread in threading.enumerate())


def test_a_throttled_script_gets_more_shards_without_further_wiring(script: Script) -> None:
    with script.opened(options()) as db:
        readings = db.collection(Reading)
        made = [readings.create(Reading(tenant="t")).id for _ in range(40)]

        script.throttle_twice(db)
        until(lambda: script.resharder.status(SCOPE).count == 4 and not script.resharder.busy())

        made += [readings.create(Reading(tenant="t")).id for _ in range(10)]
        assert sorted(each.id for each in readings.items(tenant="t")) == sorted(made)
        stored = script.inner.call("Scan", {"TableName": script.table})["Items"]
        assert len({item["PK"]["S"] for item in stored}) == 4
        until(lambda: not driving())


def test_a_second_request_starts_the_thread_again(script: Script) -> None:
    with script.opened(options()) as db:
        script.throttle_twice(db)
        until(lambda: script.resharder.status(SCOPE).count == 4 and not script.resharder.busy())
        script.clock.now += 3600

        script.throttle_twice(db)
        until(lambda: script.resharder.status(SCOPE).count == 8 and not script.resharder.busy())


def test_what_ends_the_thread_is_reported_and_the_next_request_starts_another(script: Script) -> None:
    def strike(_send: Send, _request: object) -> Wire:
        raise RuntimeError("a mistake")

    failed = list[Exception]()
    faulty = FaultyTransport(script.inner, [Fault("BatchGetItem", strike)])
    driver = BackgroundDriver(script.resharder_on(faulty), failed=failed.append, log=lambda _: None)
    script.resharder.start(SCOPE, 4)

    driver.requested()
    until(lambda: failed != [])
    assert str(failed[0]) == "a mistake"
    until(lambda: not driving())

    driver.requested()
    until(lambda: script.resharder.status(SCOPE).count == 4 and not script.resharder.busy())
    driver.close()
    assert len(failed) == 1


def test_one_thread_serves_all_requests_and_closing_ends_it_before_the_resize_is_complete(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, closing = threading.Event(), threading.Event()

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        begun.set()
        assert closing.wait(30)
        return send(request)

    def join(work: Callable[[], None]) -> None:
        closing.set()
        work()

    monkeypatch.setattr("dynashard.growth.driving.in_thread", join)
    faulty = FaultyTransport(script.inner, [Fault("BatchGetItem", strike)])
    driver = BackgroundDriver(script.resharder_on(faulty), failed=list[Exception]().append, log=lambda _: None)
    script.resharder.start(SCOPE, 4)

    driver.requested()
    assert begun.wait(30)
    driver.requested()
    assert [thread.name for thread in threading.enumerate()].count("dynashard-resharding") == 1
    driver.close()

    assert not driving()
    assert [(status.key, status.target) for status in script.resharder.busy()] == [(SCOPE.key, 4)]


def test_a_thread_that_cannot_be_started_is_started_by_the_next_request(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = BackgroundDriver(script.resharder_on(script.inner), failed=list[Exception]().append, log=lambda _: None)
    script.resharder.start(SCOPE, 4)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more_threads)
        with pytest.raises(RuntimeError):
            driver.requested()
    driver.close()

    driver = BackgroundDriver(script.resharder_on(script.inner), failed=list[Exception]().append, log=lambda _: None)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more_threads)
        with pytest.raises(RuntimeError):
            driver.requested()
    driver.requested()
    until(lambda: script.resharder.status(SCOPE).count == 4 and not script.resharder.busy())
    driver.close()


def test_a_request_is_reported_although_no_thread_can_be_started_for_it(
    script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dynashard.growth")
    with script.opened(options()) as db, monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more_threads)
        script.throttle_twice(db)

    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["asked", "growth failed"]
    assert [(status.key, status.target) for status in script.resharder.busy()] == [(SCOPE.key, 4)]


def test_without_a_driver_the_request_waits_for_a_worker_and_no_thread_is_started(
    script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dynashard.growth")
    with script.opened(options(drives=False)) as db, monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more_threads)
        script.throttle_twice(db)

    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["asked"]
    assert [(status.key, status.target) for status in script.resharder.busy()] == [(SCOPE.key, 4)]


def test_a_closed_one_leaves_its_change_to_the_next_driver(script: Script) -> None:
    db = script.opened(options())
    db.close()

    script.throttle_twice(db)

    assert [(status.key, status.target) for status in script.resharder.busy()] == [(SCOPE.key, 4)]


def test_events_are_logged_where_nothing_else_receives_them(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dynashard.growth")
    with script.opened(GrowthOptions(settings=GrowthSettings("dry_run"), entities=[Reading])) as db:
        script.throttle_twice(db)

    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["would_ask"]
    assert script.resharder.busy() == []


def test_growth_is_on_by_default_and_can_be_switched_off(script: Script) -> None:
    off = script.opened("off")

    script.throttle_twice(off)

    assert off.store.transport is script.wire
    assert script.resharder.busy() == []
    default = Dynashard(script.wire, table="t", topology_table="u", cursor_keys=["long enough for a cursor key"])
    assert default.store.transport is not script.wire


def test_an_unknown_mode_is_refused_with_the_known_ones(script: Script) -> None:
    with pytest.raises(ConfigurationError, match="growth mode is 'yes'; use on, dry_run, off"):
        script.opened("yes")  # type: ignore[arg-type]
