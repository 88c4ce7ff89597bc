"""For whom a direct invocation asks: a user, the service itself, or nobody said so."""

from collections.abc import Mapping
from typing import Any

import pytest

from dynashard.errors import ConfigurationError
from dynashard.transport import Transport
from dynashard_serving.settings import ServingSettings
from tests.api_caller import a_user
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine

READER = {"subject": "grace", "scopes": ["users:read"]}
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "an item": {"operation": "get", "key": {"id": "u1"}},
    "a listing": {"operation": "list"},
    "a write": {"operation": "put", "item": a_user(id="u2")},
    "keys": {"operation": "batch_get", "keys": [{"id": "u1"}]},
    "a batch": {"operation": "batch", "requests": [{"operation": "put", "item": a_user(id="u2")}]},
    "writes": {"operation": "batch_write", "put": [a_user(id="u2")]},
    "what has no rules": {"operation": "list", "entity": "operations"},
    "edges": {"operation": "create", "entity": "follows", "item": {"node": "User.1", "other": "User.2"}},
    "a read of the domain's own": {"operation": "get", "entity": "my-incidents", "user_id": "ada"},
}


@pytest.fixture
def service(transport: Transport, table: str) -> Service:
    """A service whose requests have to say for whom they are."""
    open_ = Service(commands_on(transport, table))
    open_.result("create", item=a_user(id="u1", manager_id="grace"))
    return Service(commands_on(transport, table, caller_required=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("caller", [{}, {"caller": None}], ids=["left out", "null"])
def test_a_request_that_does_not_say_for_whom_it_asks_is_refused(
    service: Service, caller: Mapping[str, Any], request_: Mapping[str, Any]
) -> None:
    error = service.error(**request_, **caller)

    assert (error["code"], error["details"]) == ("forbidden", {})
    assert '"caller": {"subject": ..., "scopes": [...]}' in error["message"]
    assert '"caller": "service"' in error["message"]
    assert service.result("count", caller="service") == 1
    assert service.result("list", entity="follows", of="User.1", caller="service")["items"] == []


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_service_that_says_so_asks_for_itself(
    service: Service, transport: Transport, table: str, request_: Mapping[str, Any]
) -> None:
    for each in (service, Service(commands_on(transport, table))):
        each.result(**request_, caller="service")


def test_a_user_who_is_stated_has_the_rights_of_the_user(service: Service) -> None:
    assert service.result("get", key={"id": "u1"}, caller=READER)["id"] == "u1"
    assert service.error("delete", key={"id": "u1"}, caller=READER)["code"] == "insufficient_scope"
    assert service.error("get", key={"id": "u1"}, caller={**READER, "subject": "eve"})["code"] == "not_found"
    assert service.error("get", key={"id": "u1"}, caller={})["code"] == "insufficient_scope"


@pytest.mark.parametrize("stated", ["Service", "services", "", ["service"], {"service": True}, True, 0])
def test_nothing_else_is_a_service(service: Service, stated: Any) -> None:
    error = service.error("get", key={"id": "u1"}, caller=stated)

    assert error["code"] == "validation_failed"
    if not isinstance(stated, dict):
        [wrong] = error["errors"]
        assert (wrong["field"], wrong["code"]) == ("caller", "object_type")
        assert '"service"' in wrong["message"]


def test_without_the_setting_a_service_need_not_say_that_it_asks_for_itself(transport: Transport, table: str) -> None:
    service = Service(commands_on(transport, table))

    for caller in ({}, {"caller": None}, {"caller": "service"}):
        service.result("put", item=a_user(id="u1"), **caller)


@pytest.mark.parametrize(("variables", "required"), [({}, False), ({"CALLER_REQUIRED": "true"}, True)])
def test_the_setting_is_read_from_the_environment(variables: Mapping[str, str], *, required: bool) -> None:
    given = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "t", "IDEMPOTENCY_TABLE": "t", "CURSOR_KEYS": '["a-key-of-sixteen"]'}

    assert ServingSettings.from_env({**given, **variables}).caller_required is required
    with pytest.raises(ConfigurationError, match="CALLER_REQUIRED is 'yes'"):
        ServingSettings.from_env({**given, "CALLER_REQUIRED": "yes"})
