"""The plug-in of pytest: empty tables, faults, time that jumps, and resizes on demand."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dynashard import Entity, Index, Key, Registry, Shards, new_id
from dynashard.errors import (
    ConfigurationError,
    DynashardError,
    InvalidQueryError,
    NotFoundError,
    OutcomeUnknownError,
    ThrottledError,
)
from dynashard.growth.opening import GrowthOptions
from dynashard.testing import Late, Sandbox, lost_answer, throttled
from dynashard.testing.engine import engine_endpoint, engine_program
from dynashard.testing.sandbox import open_sandbox

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[3]


class Order(
    Entity,
    name="sandbox.v1.Order",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_state", "{tenant}", "{state}", shards=Shards(2))],
    expires="until",
    registry=Registry(),
):
    """An entity with an index and an expiry."""

    tenant: str
    id: str = new_id()
    state: str = "open"
    until: datetime | None = None


class Entry(
    Entity,
    name="sandbox.v1.Entry",
    key=Key("{log}", "{id}"),
    shards=Shards(start=1, max=64, placement="epochs"),
    registry=Registry(),
):
    """An entity whose count depends on the time of its ids."""

    log: str
    id: str = new_id()


@pytest.fixture
def sandbox(engine_url: str) -> Iterator[Sandbox]:
    with open_sandbox(engine_url) as opened:
        yield opened


def test_a_sandbox_is_empty_and_serves_every_call(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)

    order = orders.create(Order(tenant="t"))

    assert [each.id for each in orders.list(tenant="t")] == [order.id]
    assert orders.get(tenant="t", id=order.id) == order


def test_faults_are_injected_once_each_and_those_left_are_named(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)
    sandbox.inject(throttled("PutItem"), lost_answer("PutItem", nth=2), throttled("Query"))

    with pytest.raises(ThrottledError):
        orders.create(Order(tenant="t", id="a"))
    orders.create(Order(tenant="t", id="b"), handling="guarded")

    assert [fault.operation for fault in sandbox.faults.waiting] == ["Query"]
    assert orders.find(tenant="t", id="a") is None
    assert orders.find(tenant="t", id="b") is not None


def test_faults_that_are_added_count_requests_anew(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)
    sandbox.inject(throttled("GetItem"))
    orders.create(Order(tenant="t", id="a"))

    sandbox.inject(throttled("PutItem"))

    with pytest.raises(ThrottledError):
        orders.create(Order(tenant="t", id="b"))
    with pytest.raises(ThrottledError):
        orders.get(tenant="t", id="a")


def test_a_late_request_is_executed_when_the_test_says_so(sandbox: Sandbox) -> None:
    orders, late = sandbox.db.collection(Order), Late("DeleteItem")
    orders.create(Order(tenant="t", id="a"))
    sandbox.inject(late.fault)

    with pytest.raises(OutcomeUnknownError):
        orders.delete(tenant="t", id="a")
    before = orders.find(tenant="t", id="a")
    late.arrive()

    assert before is not None
    assert orders.find(tenant="t", id="a") is None


@pytest.mark.parametrize("partition", [{"tenant": "t"}, {}], ids=["one", "all"])
def test_a_count_changes_on_demand_and_items_stay(sandbox: Sandbox, partition: dict[str, str]) -> None:
    orders = sandbox.db.collection(Order)
    made = sorted(orders.create(Order(tenant="t")).id for _ in range(30))

    status = sandbox.reshard(Order, 8, **partition)

    assert (status.count, status.target) == (8, None)
    assert sorted(each.id for each in orders.items(tenant="t")) == made
    stored = sandbox.faults.inner.call("Scan", {"TableName": sandbox.table})["Items"]
    assert len({item["PK"]["S"] for item in stored}) > 2


def test_all_partitions_change_after_one_has_changed_alone(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)
    sandbox.reshard(Order, 4, tenant="abc")

    status = sandbox.reshard(Order, 8)

    sandbox.pass_time(60)
    assert (status.count, len(orders.shards(tenant="abc")), len(orders.shards(tenant="new"))) == (8, 4, 8)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda sandbox: sandbox.inject("PutItem"), r"it got 'PutItem'; write inject\(throttled\("),
        (lambda sandbox: sandbox.inject(throttled), r"it got a function; write inject\(throttled\("),
        (lambda sandbox: sandbox.inject(throttled("Put")), "Put is not an operation for items.*did you mean PutItem"),
        (lambda sandbox: sandbox.inject(Late("PutItem")), r"it got a Late; write inject\(late\.fault\)"),
        (lambda sandbox: sandbox.pass_time(-5), r"it got -5; write pass_time\(3600\)"),
        (lambda sandbox: sandbox.pass_time("1h"), r"it got '1h'; write pass_time\(3600\)"),
        (lambda sandbox: sandbox.reshard("Order", 8), "is not the class of an entity: write the class itself"),
        (lambda sandbox: sandbox.reshard(Order, "8"), "the new count is '8'; write a number"),
    ],
)
def test_a_call_of_a_sandbox_that_cannot_work_names_the_cure(
    sandbox: Sandbox, call: Callable[[Any], Any], cure: str
) -> None:
    with pytest.raises(DynashardError, match=cure):
        call(sandbox)


def test_an_index_changes_on_demand(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)
    made = sorted(orders.create(Order(tenant="t")).id for _ in range(20))

    assert sandbox.reshard(Order, 8, index="by_state").count == 8
    assert sorted(each.id for each in orders.items(tenant="t", state="open")) == made


def test_an_index_that_there_is_not_is_refused_with_those_that_there_are(sandbox: Sandbox) -> None:
    with pytest.raises(InvalidQueryError, match=r"sandbox\.v1\.Order has no index by_day; it has by_state"):
        sandbox.reshard(Order, 8, index="by_day")


def test_new_ids_have_the_time_of_the_sandbox_and_reach_the_epoch_that_a_reshard_has_begun(sandbox: Sandbox) -> None:
    entries = sandbox.db.collection(Entry)
    first = [entries.create(log="a").id for _ in range(8)]
    sandbox.reshard(Entry, 8, log="a")
    later = [entries.create(log="a").id for _ in range(32)]

    assert max(first) < min(later)
    assert sum(shard.items > 0 for shard in entries.shards(log="a")) > 1
    assert [each.id for each in entries.items(log="a", order="ordered")] == sorted(first) + sorted(later)


def test_new_ids_have_the_present_time_after_a_sandbox(engine_url: str) -> None:
    with open_sandbox(engine_url) as sandbox:
        sandbox.pass_time(3600)
        ahead = Order(tenant="t").id

    assert Order(tenant="t").id < ahead


def test_traffic_of_a_test_meets_each_phase(sandbox: Sandbox) -> None:
    orders, phases, made = sandbox.db.collection(Order), list[str](), list[str]()

    for status in sandbox.phases(Order, 4, tenant="t"):
        phases.append(status.phase)
        made += [orders.create(Order(tenant="t")).id for _ in range(5)]

    assert [name for name in ("prepare", "move", "settle") if name in phases] == ["prepare", "move", "settle"]
    assert sorted(each.id for each in orders.items(tenant="t")) == sorted(made)


def test_time_jumps_when_the_test_says_so(sandbox: Sandbox) -> None:
    orders = sandbox.db.collection(Order)
    until = datetime.fromtimestamp(sandbox.runtime.clock()).astimezone() + timedelta(hours=1)
    order = orders.create(Order(tenant="t", until=until))

    sandbox.pass_time(3601)

    with pytest.raises(NotFoundError):
        orders.get(tenant="t", id=order.id)


def test_another_process_has_arguments_of_its_own(sandbox: Sandbox) -> None:
    with sandbox.open(growth=GrowthOptions(drives=False)) as other:
        order = other.collection(Order).create(Order(tenant="t"))

        assert sandbox.db.collection(Order).get(tenant="t", id=order.id) == order


def test_a_running_engine_or_a_program_may_be_named(tmp_path: Path) -> None:
    program = tmp_path / "dynoxide"
    program.touch()

    with engine_endpoint({"DYNAMODB_ENDPOINT": "http://127.0.0.1:1/"}, tmp_path) as endpoint:
        assert endpoint == "http://127.0.0.1:1"
    assert engine_program({"DYNOXIDE_BIN": str(program)}, tmp_path) == program


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "there is no local DynamoDB engine: no node_modules/@dynoxide/.* Run `npm install @dynoxide/"),
        ({"DYNOXIDE_BIN": "/nowhere"}, "DYNOXIDE_BIN is /nowhere, which is not a file"),
        ({"DYNOXIDE_BIN": "/bin/true"}, "/bin/true does not listen on any of 5 free ports"),
    ],
    ids=["none", "missing", "another"],
)
def test_a_missing_engine_is_refused_with_the_cure(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message), engine_endpoint(environ, tmp_path):
        pass


SUITE = """
from dynashard import Entity, Key, Shards, new_id
from dynashard.testing import throttled

class Order(Entity, name="shop.v1.Order", key=Key("{tenant}", "{id}"), shards=Shards(2)):
    tenant: str
    id: str = new_id()

def test_db(dynashard_db):
    assert list(dynashard_db.collection(Order).list(tenant="t")) == []
    dynashard_db.collection(Order).create(Order(tenant="t"))

def test_async_db(dynashard_async_db):
    import asyncio

    async def main():
        orders = dynashard_async_db.collection(Order)
        await orders.create(Order(tenant="t"))
        return [order.tenant async for order in orders.list(tenant="t")]

    assert asyncio.run(main()) == ["t"]

def test_sandbox(dynashard_sandbox):
    assert list(dynashard_sandbox.db.collection(Order).list(tenant="t")) == []
    assert dynashard_sandbox.reshard(Order, 4, tenant="t").count == 4
"""


def run_suite(folder: Path, engine: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a suite of somebody else's, in whose environment the plug-in is registered."""
    (folder / "test_shop.py").write_text(SUITE)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **engine}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dynashard.testing.plugin", "-p", "no:cacheprovider", "."]
    return subprocess.run(  # noqa: S603 - this interpreter
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_fixtures_serve_a_suite_of_another_project(tmp_path: Path, engine_url: str) -> None:
    done = run_suite(tmp_path, {"DYNAMODB_ENDPOINT": engine_url})

    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_suite_without_an_engine_fails_with_the_cure(tmp_path: Path) -> None:
    done = run_suite(tmp_path, {})

    assert done.returncode != 0
    assert done.stdout.count("\nthere is no local DynamoDB engine") == 3
    assert "engine.py" not in done.stdout


def test_the_plug_in_is_an_entry_point_of_the_package() -> None:
    project = (ROOT / "layers/sharding/pyproject.toml").read_text()

    assert '[project.entry-points.pytest11]\ndynashard = "dynashard.testing.plugin"' in project
