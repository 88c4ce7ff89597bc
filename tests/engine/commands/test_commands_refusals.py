"""Direct invocation: requests that are refused, and what the refusal names."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.samples.users import User
from dynashard import definition
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport
from dynashard.transport import Transport
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import READS, Exposed
from dynashard_serving.domain import declared
from tests.api_caller import a_user
from tests.domain_served import ENTITIES
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def paths() -> Mapping[str, Any]:
    """The paths of the OpenAPI document."""
    found: Mapping[str, Any] = document_of(declared())["paths"]
    return found


def test_a_read_only_entity_refuses_changes(transport: Transport, table: str) -> None:
    service = Service(commands_on(transport, table, exposed=(Exposed(User, path="users", operations=READS),)))

    assert service.result("list") == {"items": [], "cursor": None}
    for operation in ("create", "put", "update", "delete", "batch_write"):
        assert service.error(operation)["code"] == "method_not_allowed"


@pytest.mark.parametrize("asked", [each for each in ENTITIES if not each.operations], ids=lambda each: each.path)
def test_an_unsupported_operation_names_the_supported_ones(
    service: Service, paths: Mapping[str, Any], asked: Exposed
) -> None:
    name = definition(asked.entity).name

    error = service.error("update", entity=name)

    assert error["code"] == "method_not_allowed"
    instead = {
        "follow.v1.Follow": "follow.v1.Follow is not served with update; it is with create, get, delete, list, count.",
        "follow.v1.Count": "follow.v1.Count is not served by itself: ask for follows.",
        "sequence.v1.Sequence": "sequence.v1.Sequence is not served, only by code that uses the layer.",
        "screening.v1.Seats": "screening.v1.Seats is not served with update; it is with get, add, take.",
        "article.v1.Likes": "article.v1.Likes is not served with update; it is with get, add, take.",
        "counter.v1.Receipt": "counter.v1.Receipt is not served, only by code that uses the layer.",
    }
    assert error["message"] == instead.get(name, f"{name} is not served by itself: ask for roll-ups.")
    assert asked.route is None or asked.route in paths


def test_the_time_of_a_new_item_has_the_bounds_of_rest(transport: Transport, table: str) -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    service = Service(commands_on(transport, table, runtime=Runtime(now.timestamp)), entity="ping.v1.Ping")
    ping = {"series": "s", "episode": "e", "id": "p", "session_id": "x"}

    late = service.fields("create", item={**ping, "at": (now - timedelta(days=8)).isoformat()})
    taken = service.result("create", item={**ping, "at": (now - timedelta(days=6)).isoformat()})

    assert late == {"at": "outside_window"}
    assert taken["id"] == "p"


@pytest.mark.parametrize("event", [None, 7, "x", [], {}, {"operation": ["create"]}, {"operation": "drop"}])
def test_an_invalid_request_is_refused(service: Service, event: Any) -> None:
    answer = service.commands.answer(event)

    assert (answer["ok"], answer["error"]["code"]) == (False, "invalid_input")
    assert "there are create, get, put" in answer["error"]["message"] or not isinstance(event, dict)


def test_an_unknown_entity_is_refused_with_the_known_ones(service: Service) -> None:
    error = service.error("get", entity="user.v2.User", key={"id": "1"})

    assert (error["code"], error["errors"][0]["field"]) == ("invalid_input", "entity")
    assert "user.v1.User" in error["message"]


@pytest.mark.parametrize(
    ("operation", "members", "fields"),
    [
        ("create", {}, {"item": "missing"}),
        ("create", {"item": []}, {"item": "dict_type"}),
        ("create", {"item": {}}, {"email": "missing", "display_name": "missing"}),
        ("create", {"item": a_user(created_at="2026-01-01T00:00:00Z")}, {"created_at": "read_only"}),
        ("create", {"item": a_user(), "idempotency_key": ""}, {"idempotency_key": "out_of_range"}),
        ("create", {"item": a_user(), "idempotency_key": 7}, {"idempotency_key": "str_type"}),
        ("create", {"item": a_user(), "if_match": "x"}, {"if_match": "unknown_parameter"}),
        ("create", {"tenant_id": None, "item": a_user()}, {"tenant_id": "missing"}),
        *(
            ("create", {"tenant_id": tenant, "item": a_user()}, {"tenant_id": "string_pattern_mismatch"})
            for tenant in ("", "a:b", "\ud800", 7, True, ["abc"], "null", "true", " abc", "abc\n", "a b", "a" * 65)
        ),
        ("get", {}, {"key": "missing"}),
        ("get", {"key": {}}, {"key.id": "missing"}),
        ("get", {"key": {"id": 7}}, {"key.id": "string_type"}),
        ("get", {"key": {"id": "1"}, "consistent": "yes"}, {"consistent": "bool_type"}),
        ("get", {"key": {"id": ""}}, {"id": "invalid_key"}),
        ("update", {"key": {"id": "1"}}, {"patch": "missing"}),
        ("batch_get", {"keys": [1]}, {"keys.0": "object_type"}),
        ("batch_get", {"keys": [{}] * 1001}, {"keys": "out_of_range"}),
        ("batch_get", {}, {"keys": "missing"}),
        ("batch", {}, {"requests": "list_type"}),
        ("batch", {"requests": None}, {"requests": "list_type"}),
        ("batch", {"requests": {}}, {"requests": "list_type"}),
        ("batch", {"requests": []}, {"requests": "out_of_range"}),
        ("batch", {"requests": [7]}, {"requests.0": "object_type"}),
    ],
)
def test_bad_input_names_the_fields(
    service: Service, operation: str, members: dict[str, Any], fields: dict[str, str]
) -> None:
    assert service.fields(operation, **members) == fields


def test_an_internal_error_is_logged_and_not_shown(table: str) -> None:
    class Broken:
        def call(self, operation: str, request: Any) -> Any:
            raise RuntimeError(f"secret of {operation} {request}")

    errors: list[Exception] = []

    class Log:
        def failed(self, error: Exception) -> None:
            errors.append(error)

        growth_failed = failed

        def grew(self, report: Any) -> None:
            raise AssertionError(report)

    service = Service(commands_on(FaultyTransport(Broken()), table, log=Log()))  # type: ignore[arg-type]

    error = service.error("get", key={"id": "1"})

    assert error["code"] == "internal_error"
    assert "secret" not in str(error)
    assert len(errors) == 1


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_time_that_utc_cannot_express_is_refused(service: Service, time: str) -> None:
    article = {"author": "parth", "title": "On", "published_at": time}
    asked = Service(service.commands, entity="articles")

    assert asked.fields("create", item=article) == {"published_at": "value_error"}
