"""The cost of topology for the API: one read a lease for each process, and none in a request."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from domain.samples.users import User
from dynashard import Dynashard, LeasedTopology, definition
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport
from dynashard.topology import DeclaredTopology, TopologyTable
from dynashard.topology.records import first_record
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import KEYS, settings_of
from tests.engine.topology.topology_world import Clock, topology_table_on
from tests.roles import as_function

pytestmark = pytest.mark.engine

LEASE = 30.0
FAMILY = definition(User).name

Request = Callable[[Caller], Any]
REQUESTS: dict[str, Request] = {
    "create": lambda caller: caller.post("/v1/users", a_user(id="made")),
    "get": lambda caller: caller.get("/v1/users/1"),
    "replace": lambda caller: caller.put("/v1/users/1", a_user(display_name="New")),
    "patch": lambda caller: caller.patch("/v1/users/1", {"display_name": "Newer"}),
    "list": lambda caller: caller.get("/v1/users"),
    "list in order": lambda caller: caller.get("/v1/users", query="order=ordered"),
    "list an index": lambda caller: caller.get("/v1/users", query="index=by_department&department=eng"),
    "delete": lambda caller: caller.delete("/v1/users/1"),
}
"""Requests of each kind, in an order in which all succeed."""


class World:
    """The API on its own tables, with a record of its requests. `calls` returns their tables, too."""

    def __init__(self, wire: Transport, table: str, topology: str) -> None:
        self.clock = Clock()
        self.table, self.topology = table, topology
        self.wire = FaultyTransport(wire)
        settings = settings_of(table, topology_table=topology, topology_lease_seconds=LEASE)
        allowed = as_function("api", self.wire, table, topology)
        self.caller = Caller(build_app(settings, allowed, runtime=Runtime(self.clock)))
        assert self.caller.put("/v1/users/1", a_user(department="eng")).status == 201

    def calls(self) -> Counter[tuple[str, str]]:
        """Return the operations and tables since the last call."""
        counted = Counter((each.operation, self._table_of(each.request)) for each in self.wire.calls)
        self.wire.calls.clear()
        return counted

    def topology_calls(self) -> list[str]:
        """Return the operations on the topology table since the last call."""
        return [operation for operation, table in self.calls().elements() if table == "topology"]

    def _table_of(self, request: Any) -> str:
        name = request.get("TableName") or next(iter(request["RequestItems"]))
        return {self.table: "table", self.topology: "topology"}[name]


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[World]:
    with topology_table_on(wire) as topology:
        yield World(wire, table, topology)


def ask(world: World) -> None:
    """Send a request of each kind. From the second time on, the created item exists already."""
    for name, request in REQUESTS.items():
        assert request(world.caller).status in (200, 201, 204, 409), name
    assert world.caller.put("/v1/users/1", a_user(department="eng")).status == 201


def test_the_first_request_writes_the_records_of_its_entity(world: World) -> None:
    calls = world.calls()

    assert {each: count for each, count in calls.items() if "topology" in each} == {
        ("BatchGetItem", "topology"): 1,
        ("PutItem", "topology"): 3,
    }
    assert TopologyTable(world.wire, world.topology).find(FAMILY) == first_record(
        FAMILY, 16, now=world.clock.now, lease=LEASE
    )


def test_no_request_asks_for_topology_while_the_lease_lasts(world: World) -> None:
    world.calls()

    for _ in range(3):
        ask(world)
        world.clock.now += 9

    assert world.topology_calls() == []


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_with_a_lease_sends_no_more_than_one_with_fixed_counts(world: World, name: str) -> None:
    world.calls()
    REQUESTS[name](world.caller)
    sent = world.calls()

    fixed = Dynashard(
        world.wire, table=world.table, topology=DeclaredTopology(), cursor_keys=KEYS, runtime=Runtime(world.clock)
    ).collection(User)
    key = {"tenant_id": "abc", "id": "1"}
    item = User(**a_user(id="2", department="eng"), tenant_id="abc")
    alike: dict[str, Callable[[], object]] = {
        "create": lambda: fixed.create(item),
        "get": lambda: fixed.get(key),
        "list": lambda: fixed.list({"tenant_id": "abc"}),
        "list in order": lambda: fixed.list({"tenant_id": "abc"}, order="ordered"),
        "list an index": lambda: fixed.list({"tenant_id": "abc", "department": "eng"}, index="by_department"),
    }
    if name in alike:
        alike[name]()
        assert sent == world.calls()
    assert {table for _, table in sent} == {"table"}


def test_topology_is_read_once_a_lease_for_tables_and_indexes_alike(world: World) -> None:
    world.topology_calls()
    sent = []
    for _ in range(4):
        ask(world)
        ask(world)
        sent.append(world.topology_calls())
        world.clock.now += LEASE

    assert sent == [[], ["BatchGetItem"], ["BatchGetItem"], ["BatchGetItem"]]


@pytest.mark.parametrize("name", ["list", "list an index", "get"])
def test_a_lease_that_ended_costs_each_kind_of_request_one_read(world: World, name: str) -> None:
    world.calls()
    world.clock.now += LEASE

    REQUESTS[name](world.caller)

    assert world.topology_calls() == ["BatchGetItem"]


def test_each_partition_with_its_own_count_costs_one_more_read(world: World) -> None:
    records = TopologyTable(world.wire, world.topology)
    family = records.find(FAMILY)
    assert family is not None
    records.save((family, replace(family.revised(world.clock.now), differ_since=world.clock.now)))
    world.clock.now += LEASE
    world.topology_calls()

    sent = []
    for tenant in ("abc", "xyz", "abc", "xyz"):
        world.caller.of(tenant).get("/v1/users")
        world.caller.of(tenant).get("/v1/users/1")
        sent.append(len(world.topology_calls()))

    assert sent == [2, 1, 0, 0]


def test_a_count_that_was_changed_is_followed_by_items_and_lists_alike(world: World, wire: Transport) -> None:
    records = TopologyTable(wire, world.topology)
    family = records.find(FAMILY)
    assert family is not None
    records.save((family, family.revised(world.clock.now, count=64)))
    world.clock.now += LEASE
    world.calls()

    for number in range(40):
        assert world.caller.put(f"/v1/users/n{number:02d}", a_user()).status == 201

    own = LeasedTopology(wire, world.topology, runtime=Runtime(world.clock))
    seen = Dynashard(wire, table=world.table, cursor_keys=KEYS, topology=own).collection(User)
    shards = {load.partition_key: load.items for load in seen.shards({"tenant_id": "abc"})}
    assert len(shards) == 64
    assert any(items for key, items in shards.items() if int(key.rpartition(":")[2]) >= 16)
    listed = world.caller.get("/v1/users", query="limit=100").json["items"]
    assert {item["id"] for item in listed} >= {f"n{number:02d}" for number in range(40)}
