"""The check for quiet counts halves them, in a deployment and in the local stack."""

import time
from collections.abc import Iterator
from decimal import Decimal

import pytest

from domain.samples.users import User
from dynashard import LeasedTopology, definition
from dynashard.growth.requests import shrink_quiet
from dynashard.growth.settings import GrowthMode, GrowthSettings, Load
from dynashard.growth.terms import GrowthEvent
from dynashard.resharding.driver import drive
from dynashard.runtime import Runtime
from dynashard.topology import Record
from dynashard.transport import Transport
from dynashard_local.workers.resharding import SHRINK_SECONDS, shrink_hourly
from dynashard_serving.domain import domain_of
from dynashard_serving.reshard import handler
from dynashard_serving.reshard.backend import resharder_of
from dynashard_serving.reshard.shrink import shrink
from tests.engine.serving.growth_world import EXPOSED, GrowthWorld, Meter, Reading, by_street, growth_world, partition
from tests.engine.topology.topology_world import put_by_hand, topology_table_on
from tests.roles import as_function

pytestmark = pytest.mark.engine

DAY = 24 * 3600.0
SHRINK = {"look": "shrink"}
"""The event of the reshard stack's hourly rule, which tests/infra compares with the rule."""


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[GrowthWorld]:
    """A world where a calculated partition, a random one and an index have grown after throttles."""
    with growth_world(wire, table) as made:
        made.throttle_twice(made.api(), "meters", "IndexWriteKeyRangeThroughputExceeded", "GSI2")
        made.work()
        for path in ("meters", "readings"):
            made.throttle_twice(made.api(), path)
        made.work()
        yield made


def look(world: GrowthWorld, *, throttled: bool = False, **settings: object) -> list[str]:
    """Run the deployed check for quiet counts, and return its lines."""

    class Known:
        def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
            raise AssertionError((index, writing))

        def limit(self, *, index: str | None = None, writing: bool = True) -> float | None:
            raise AssertionError((index, writing))

        def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
            assert (seconds, index) in ((DAY, None), (DAY, "GSI2"))
            return not throttled

    logged: list[str] = []
    lines = shrink(
        world.reshard_settings(**settings),
        world.resharder_on(as_function("watch", world.inner, world.table, world.topology)),
        log=logged.append,
        load=Known(),
    )
    assert lines == logged
    return lines


def test_an_automatic_growth_is_halved_after_the_quiet_time_and_no_further(world: GrowthWorld) -> None:
    too_early = look(world)
    world.clock.now += DAY
    lines = look(world)
    requested = world.requests()
    world.work()
    world.clock.now += 10 * DAY

    assert too_early == []
    # A table and an index of one family never change together, so the next check requests the other again.
    assert requested == {
        partition(Meter).key: (2, "quiet"),
        partition(Reading).key: (1, "quiet"),
    } or requested == {by_street().key: (2, "quiet"), partition(Reading).key: (1, "quiet")}
    assert sorted(line.partition(":")[0] for line in lines) == ["asked", "asked", "refused"]
    # An index whose count grew for new entries alone is rewritten first, and halved by a check of its own.
    for _ in range(2):
        look(world)
        world.work()
        world.clock.now += 10 * DAY
    assert look(world) == []
    assert [world.resharder.status(scope).count for scope in (partition(Meter), by_street(), partition(Reading))] == [
        2,
        2,
        1,
    ]


def test_nothing_shrinks_while_the_table_is_throttled(world: GrowthWorld) -> None:
    world.clock.now += DAY

    assert look(world, throttled=True) == []


def test_a_count_set_by_an_operator_is_left_alone(world: GrowthWorld) -> None:
    world.resharder.start(partition(Reading), 4)
    world.work()
    world.clock.now += DAY

    look(world)

    assert partition(Reading).key not in world.requests()


def test_a_dry_run_and_the_kill_switch_request_nothing(world: GrowthWorld) -> None:
    world.clock.now += DAY

    dry, off = look(world, growth_mode="dry_run"), look(world, growth_mode="off")

    assert {line.partition(":")[0] for line in dry} == {"would_ask"}
    assert (off, world.requests()) == ([], {})


def test_one_run_requests_at_most_its_limit(world: GrowthWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.clock.now += DAY

    def check(most: int, mode: GrowthMode = "on") -> list[GrowthEvent]:
        monkeypatch.setattr("dynashard.growth.requests.MOST_SHRUNK", most)
        return [each.event for each in shrink_quiet(world.resharder, settings=GrowthSettings(mode))]

    assert check(2, "dry_run") == [GrowthEvent.WOULD_ASK] * 2
    assert check(1) == [GrowthEvent.ASKED]
    # A table and an index of one family never change together. What is refused does not count.
    assert check(1) == [GrowthEvent.REFUSED, GrowthEvent.ASKED]


def test_a_record_without_a_declaration_is_skipped(world: GrowthWorld) -> None:
    put_by_hand(world.inner, world.topology, Record("grow.v1.Meter|GSI3", 64, Decimal(1), 30.0))
    world.clock.now += DAY

    assert look(world)


@pytest.fixture
def deployed(wire: Transport, table: str, engine_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set the environment of a function whose users grew two days ago, and return its topology table."""
    entries = (handler._settings, handler._transport, handler._resharder)
    with topology_table_on(wire) as topology:
        LeasedTopology(wire, topology).view(definition(User), "")
        grown = Record("user.v1.User:abc", 32, Decimal(int(time.time() - 2 * DAY)), 30.0, resize={"cause": "throttle"})
        put_by_hand(wire, topology, grown)
        for name, value in {
            "TABLE_NAME": table,
            "TOPOLOGY_TABLE": topology,
            "ENVIRONMENT": "local",
            "DYNAMODB_ENDPOINT": engine_url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }.items():
            monkeypatch.setenv(name, value)
        for entry in entries:
            entry.cache_clear()
        allowed = as_function("watch", wire, table, topology)
        monkeypatch.setattr(handler, "open_transport", lambda _settings: allowed)
        yield topology
    for entry in entries:
        entry.cache_clear()


@pytest.mark.usefixtures("deployed")
def test_the_schedule_makes_the_watch_shrink_quiet_counts() -> None:
    first, second = (handler.watch(SHRINK, None) for _ in range(2))

    assert first == ["asked: user.v1.User:abc to 16 shards: quiet for long"]
    assert second == []


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(("name", "value"), [("GROWTH_MODE", "off"), ("GROWTH_QUIET_SECONDS", str(3 * DAY))])
def test_the_watch_follows_the_settings_of_its_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    assert handler.watch(SHRINK, None) == []


@pytest.mark.usefixtures("deployed")
def test_the_watch_asks_cloudwatch_whether_the_table_was_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    class Throttled:
        def calm(self, _seconds: float, *, index: str | None = None) -> bool:
            assert index is None
            return False

    monkeypatch.setattr(handler, "cloudwatch", lambda *_: Throttled())

    assert handler.watch(SHRINK, None) == []


def test_the_worker_moves_at_the_share_of_its_settings_and_declines_by_their_minutes(world: GrowthWorld) -> None:
    settings = world.reshard_settings(growth_mover_share=0.1, growth_most_minutes=0.01)
    worker = resharder_of(
        settings, world.inner, domain=domain_of(*EXPOSED), runtime=Runtime(world.clock, world.leap, lambda: 0.5)
    )
    assert world.api().post("/v1/meters", {}).status == 201

    part = worker.estimate(partition(Meter), 8).part
    worker.start(partition(Meter), 8, cause="throttle")
    drive(worker, stop=lambda: worker.busy() == [], sleep=world.leap, log=pytest.fail)

    assert part == 0.1
    assert "by itself it may take at most" in (worker.status(partition(Meter)).declined or "")


def test_the_local_worker_checks_at_once_and_every_hour_despite_errors() -> None:
    looks: list[float] = []
    now = [0.0]
    logged: list[str] = []

    def look() -> None:
        looks.append(now[0])
        if len(looks) == 2:
            raise RuntimeError("a mistake of the programmer")

    def sleep(seconds: float) -> None:
        now[0] += seconds

    shrink_hourly(look, stop=lambda: len(looks) == 3, sleep=sleep, log=logged.append)

    assert looks == [0.0, SHRINK_SECONDS, 2 * SHRINK_SECONDS]
    assert len(logged) == 1
    assert "a mistake of the programmer" in logged[0]
