"""A throttled request of the API makes a count grow as the settings say, and its caller gets the usual error."""

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from dynashard import Entity
from dynashard.errors import ThrottledError
from dynashard.growth.settings import Load, LoadSource
from dynashard.runtime import Runtime
from dynashard.testing.faults import throttled
from dynashard.topology import Record
from dynashard.transport import Transport
from dynashard_serving.api.request_log import Observer
from dynashard_serving.backend import cloudwatch, open_entities
from dynashard_serving.table_load import TableLoad
from tests.api_caller import TENANT
from tests.engine.serving.growth_world import (
    HOT,
    GrowthWorld,
    Meter,
    Reading,
    by_street,
    growth_world,
    partition,
)
from tests.engine.topology.topology_world import put_by_hand
from tests.no_threads import no_more_threads

pytestmark = pytest.mark.engine

KINDS = pytest.mark.parametrize(
    ("model", "path", "count"), [(Meter, "meters", 2), (Reading, "readings", 1)], ids=["calculated", "random"]
)
MODELS = (Meter, Reading)
COOLDOWN = 300.0


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[GrowthWorld]:
    with growth_world(wire, table) as made:
        yield made


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Return the lines of the policy's events."""
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return [line for line in lines if line["message"] == "growth"]


def events(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the events that the policy has logged."""
    return [line["outcome"] for line in logged(capsys)]


@KINDS
def test_a_partition_throttled_twice_is_to_double_and_callers_get_the_usual_error(
    world: GrowthWorld, model: type[Entity], path: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = world.api()

    first = world.throttle(caller, path)
    requested_after_one = world.requests()
    world.clock.now += 10
    second = world.throttle(caller, path)
    third = world.throttle(caller, path)

    assert requested_after_one == {}
    assert world.requests() == {partition(model).key: (count * 2, "throttle")}
    assert events(capsys) == ["asked"]
    for answer in (first, second, third):
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "key_range_throttled", "1")
    assert second.json == first.json


@KINDS
def test_the_worker_carries_out_the_request_of_a_throttle(
    world: GrowthWorld, model: type[Entity], path: str, count: int
) -> None:
    caller = world.api()
    made = [caller.post(f"/v1/{path}", {}).json["id"] for _ in range(12)]
    world.throttle_twice(caller, path)

    complaints = world.work()

    assert complaints == []
    status = world.resharder.status(partition(model))
    assert (status.count, status.target, status.swept, status.cause) == (count * 2, None, True, "throttle")
    made += [caller.post(f"/v1/{path}", {}).json["id"] for _ in range(12)]
    listed = caller.get(f"/v1/{path}", query={"limit": "100"}).json["items"]
    assert sorted(item["id"] for item in listed) == sorted(made)
    shards = {item["PK"]["S"] for item in world.inner.call("Scan", {"TableName": world.table})["Items"]}
    assert len(shards) > count


def test_a_count_jumps_to_the_demand_that_the_requests_of_a_process_show(world: GrowthWorld) -> None:
    caller = world.api()

    for _ in range(10):
        world.throttle(caller, "meters")
    for _ in range(4):
        assert caller.post("/v1/meters", {}).status == 201
    for _ in range(30):
        world.throttle(caller, "meters")
    world.clock.now += 10
    world.throttle(caller, "meters")

    assert world.requests() == {partition(Meter).key: (8, "throttle")}


def test_a_first_throttle_sends_nothing_and_a_request_needs_only_the_roles_permissions(world: GrowthWorld) -> None:
    caller = world.api()
    caller.get("/v1/meters")
    world.wire.calls.clear()

    world.throttle(caller, "meters")
    after_one = world.topology_calls()
    world.clock.now += 10
    world.throttle(caller, "meters")

    assert after_one == []
    assert set(world.topology_calls()) == {"BatchGetItem", "PutItem"}


def test_a_throttled_listing_makes_its_partition_grow(world: GrowthWorld) -> None:
    caller = world.api()

    for _ in range(2):
        world.reason = "TableReadKeyRangeThroughputExceeded"
        assert caller.get("/v1/meters").status == 429
        world.clock.now += 10

    assert world.requests() == {partition(Meter).key: (4, "throttle")}


def test_a_function_starts_no_thread_for_a_resize_and_asks_cloudwatch_by_its_environment(
    world: GrowthWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[tuple[str, str]] = []
    monkeypatch.setattr("dynashard_serving.backend.cloudwatch", lambda *of: opened.append((of[0], of[2])))
    caller = world.api()

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", no_more_threads)
        world.throttle_twice(caller, "meters")

    lines = [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith("growth")] == ["growth"]
    assert (opened, len(world.requests())) == ([("local", world.table)], 1)


def test_a_hot_index_grows_by_itself(world: GrowthWorld) -> None:
    answers = world.throttle_twice(world.api(), "meters", "IndexWriteKeyRangeThroughputExceeded", "GSI2")

    assert world.requests() == {by_street().key: (4, "throttle")}
    assert {(answer.status, answer.code) for answer in answers} == {(429, "key_range_throttled")}
    assert world.work() == []
    assert world.resharder.status(by_street()).count == 4
    assert world.resharder.status(partition(Meter)).count == 2


@pytest.mark.parametrize(
    "reason",
    [
        "TableWriteProvisionedThroughputExceeded",
        "TableWriteAccountLimitExceeded",
        "TableWriteMaxOnDemandThroughputExceeded",
        "IndexWriteProvisionedThroughputExceeded",
    ],
)
def test_a_table_at_its_limit_never_changes_a_count(
    world: GrowthWorld, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = world.api()
    slot = "GSI2" if reason.startswith("Index") else ""

    answers = world.throttle_twice(caller, "meters", reason, slot) + world.throttle_twice(
        caller, "meters", reason, slot
    )

    assert world.requests() == {}
    assert {(answer.status, answer.code) for answer in answers} == {(429, "table_throttled")}
    assert events(capsys) == ["limit"]


def test_a_count_is_left_alone_for_the_cooldown_after_it_changed(world: GrowthWorld) -> None:
    world.throttle_twice(world.api(), "readings")
    world.work()
    record = world.record(partition(Reading))
    assert record is not None
    changed = max(int(entry.partition(":")[0]) for entry in record.history)

    # Each in a new process, which does not know what another one did.
    world.clock.now = changed + COOLDOWN - 20
    world.throttle_twice(world.api(), "readings")
    within = world.requests()
    world.clock.now = changed + COOLDOWN
    world.throttle_twice(world.api(), "readings")

    assert within == {}
    assert world.requests() == {partition(Reading).key: (4, "throttle")}


def test_a_resize_that_an_operator_aborted_is_not_requested_again_at_once(world: GrowthWorld) -> None:
    world.throttle_twice(world.api(), "meters")
    world.work()
    world.clock.now += 3600
    world.throttle_twice(world.api(), "meters")
    world.resharder.abort(partition(Meter))
    called_off = world.clock.now
    world.work()

    world.clock.now = called_off + COOLDOWN - 20
    world.throttle_twice(world.api(), "meters")
    within = world.requests()
    world.clock.now = called_off + COOLDOWN
    world.throttle_twice(world.api(), "meters")

    assert within == {}
    assert world.requests() == {partition(Meter).key: (8, "throttle")}


def test_the_cooldown_counts_from_the_newest_count_of_the_history(world: GrowthWorld) -> None:
    changed = int(world.clock.now)
    history = frozenset({f"{changed - 9000}:1", f"{changed}:2"})
    put_by_hand(world.inner, world.topology, Record(partition(Meter).key, 2, Decimal(changed), 30.0, history))

    world.clock.now = changed + COOLDOWN - 20
    world.throttle_twice(world.api(), "meters")
    within = world.requests()
    world.clock.now = changed + COOLDOWN
    world.throttle_twice(world.api(), "meters")

    assert within == {}
    assert world.requests() == {partition(Meter).key: (4, "throttle")}


def test_a_hot_partition_is_not_read_through_before_it_changes(world: GrowthWorld) -> None:
    world.throttle_twice(world.api(), "meters")

    record = world.record(partition(Meter))

    assert record is not None
    assert record.resize["survey"] is False


def test_growth_stops_at_the_ceiling(world: GrowthWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.resharder.start(partition(Reading), 4)
    world.work()
    world.clock.now += 3600

    world.throttle_twice(world.api(), "readings")

    assert world.requests() == {}
    assert events(capsys) == ["cannot"]


def test_a_dry_run_logs_the_request_it_would_make(world: GrowthWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.throttle_twice(world.api(growth_mode="dry_run"), "meters")

    assert (world.requests(), world.record(partition(Meter))) == ({}, None)
    [line] = logged(capsys)
    assert (line["outcome"], line["partition"], line["target"]) == ("would_ask", f"grow.v1.Meter:{TENANT}", 4)


def test_the_kill_switch_silences_it(world: GrowthWorld, capsys: pytest.CaptureFixture[str]) -> None:
    caller = world.api(growth_mode="off")
    caller.get("/v1/meters")
    world.wire.calls.clear()

    [answer, _] = world.throttle_twice(caller, "meters")

    assert (answer.status, answer.code) == (429, "key_range_throttled")
    assert (world.requests(), world.topology_calls(), events(capsys)) == ({}, [], [])
    db = open_entities(world.settings(growth_mode="off"), world.inner, MODELS, Observer("local", metrics=False))
    assert db.store.transport is world.inner


def test_an_unchangeable_topology_does_not_affect_the_caller(
    world: GrowthWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = world.api()
    caller.get("/v1/meters")
    world.topology_down = True

    answers = world.throttle_twice(caller, "meters")

    assert [answer.code for answer in answers] == ["key_range_throttled"] * 2
    assert events(capsys) == ["failed"]


def test_an_error_in_the_policy_is_logged_and_does_not_affect_the_caller(
    world: GrowthWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_load(_transport: Transport, _table: str) -> LoadSource:
        raise RuntimeError("a mistake of the programmer")

    db = open_entities(world.settings(), world.inner, MODELS, Observer("local", metrics=False), open_load=open_load)

    db.store.throttled(partition(Meter).entity, None, throttled_error())

    assert "a mistake of the programmer" in json.loads(capsys.readouterr().out)["exception"]


@pytest.mark.parametrize(
    ("below", "target"), [(True, 4), (False, None), (None, None)], ids=["below", "limit", "unknown"]
)
def test_a_throttle_without_a_reason_is_judged_by_the_load_of_the_table(
    world: GrowthWorld,
    below: bool | None,  # noqa: FBT001 - a case
    target: int | None,
) -> None:
    class Known:
        def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
            assert (index, writing) == (None, True)
            return Load(below, "a test says so")

        def limit(self, *, index: str | None = None, writing: bool = True) -> None:
            assert (index, writing) == (None, True)

        def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
            raise AssertionError((seconds, index))

    db = open_entities(
        world.settings(),
        world.inner,
        MODELS,
        Observer("local", metrics=False),
        runtime=Runtime(world.clock, random=lambda: 0.5),
        open_load=lambda *_: Known(),
    )

    for _ in range(2):
        db.store.throttled(partition(Meter).entity, partition(Meter).partition, throttled_error(""))
        world.clock.now += 10

    assert world.requests() == ({partition(Meter).key: (target, "throttle")} if target else {})


@pytest.mark.parametrize(("environment", "known"), [("local", False), ("dev", True), ("prod", True)])
def test_cloudwatch_is_read_only_in_deployed_environments(world: GrowthWorld, environment: str, *, known: bool) -> None:
    assert isinstance(cloudwatch(environment, world.inner, "users"), TableLoad) is known


def throttled_error(reason: str = HOT) -> ThrottledError:
    """Return the layer's error for a throttled PutItem."""
    with pytest.raises(ThrottledError) as raised:
        throttled("PutItem", reason=reason).strike(dict, {})
    return raised.value
