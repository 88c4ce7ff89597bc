"""Functions on the rights of their roles: one action less fails their requests, as it would in an account."""

from collections.abc import Callable, Iterator

import pytest

from dynashard.transport import Transport, aws
from dynashard_serving import aws_services, table_load
from dynashard_serving.api.app import build_app
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.patterns.stream_world import Streamed
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.serving.role_world import (
    RoleWorld,
    do_what_is_queued,
    serve_directly,
    serve_over_rest,
)
from tests.engine.topology.topology_world import topology_table_on
from tests.roles import BY_LAMBDA, Grant, RoleTransport, committed_role

pytestmark = pytest.mark.engine

REQUESTS: dict[str, Callable[[RoleWorld], None]] = {
    "api": serve_over_rest,
    "commands": serve_directly,
    "writer": do_what_is_queued,
}


@pytest.fixture
def world(  # noqa: PLR0917 - fixtures
    wire: Transport,
    table: str,
    records: str,
    engine_url: str,
    dynamodb: RawDynamoDB,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RoleWorld]:
    """A world for the function that the test's parameter names."""
    with topology_table_on(wire) as topology:
        tables = {table: "Table", topology: "Topology", records: "Idempotency"}
        made = RoleWorld(wire, tables, committed_role(request.param), Streamed(engine_url, dynamodb).on(table))
        for opener, name in ((aws, "sdk_client"), (aws_services, "client"), (table_load, "client")):
            monkeypatch.setattr(opener, name, made.client)
        yield made


@pytest.mark.parametrize(("world", "send"), REQUESTS.items(), indirect=["world"], ids=REQUESTS)
def test_a_role_allows_what_its_function_needs_and_no_more(world: RoleWorld, send: Callable[[RoleWorld], None]) -> None:
    send(world)

    role = world.role
    granted = {each for each in role.grants | role.others if each[1] not in BY_LAMBDA}
    assert (world.used - granted, granted - world.used) == (set(), set())
    assert all(role.without(each).refusal("PutItem", world.used) for each in world.used & role.grants)


def caller(transport: Transport, table: str, *missing: Grant) -> Caller:
    """Return a caller of an API whose role lacks these grants."""
    allowed = RoleTransport(transport, committed_role("api").without(*missing), {table: "Table", TOPOLOGY: "Topology"})
    return Caller(build_app(settings_of(table), allowed))


def test_the_whole_role_is_enough(transport: Transport, table: str) -> None:
    assert caller(transport, table).post("/v1/users", a_user()).status == 201


@pytest.mark.parametrize(
    "missing", [("Table", "PutItem"), ("Topology", "BatchGetItem")], ids=["of the table", "of the topology"]
)
def test_a_role_with_one_action_less_fails_the_request(transport: Transport, table: str, missing: Grant) -> None:
    answer = caller(transport, table, missing).post("/v1/users", a_user())

    assert (answer.status, answer.json["code"]) == (502, "engine_error")
    assert "arn:aws" not in str(answer.content)
