"""Functions on the rights of their roles: one action less fails their requests, as it would in an account."""

import pytest

from dynashard.transport import Transport
from functions.api.app import build_app
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.roles import Grant, RoleTransport, committed_role

pytestmark = pytest.mark.engine


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
