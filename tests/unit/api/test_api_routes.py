"""The routes of the API, and the refusal of all other requests."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dynashard.errors import ConfigurationError
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Call, Wire
from dynashard.transport.interface import Resend
from dynashard_serving.api.app import build_app
from dynashard_serving.api.settings import Settings
from tests.api_caller import Caller, claims_of

pytestmark = pytest.mark.unit

EVENTS = Path(__file__).parents[2] / "events"


def settings_in(environment: str) -> Settings:
    return Settings(
        table="items",
        topology_table="topology",
        idempotency_table="idempotency",
        environment=environment,
        cursor_keys=("a-key-of-16-bytes",),
    )


class Unreachable(OneByOne):
    """A transport that raises an unexpected error."""

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        del resend
        raise RuntimeError(f"secret detail of {operation} {request}")

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        raise RuntimeError(f"{calls} {concurrency}")

    def close(self) -> None:
        pass


def caller_in(environment: str = "dev", claims: Mapping[str, Any] | None = None) -> Caller:
    settings = settings_in(environment)
    return Caller(build_app(settings, Unreachable()), claims if claims is not None else claims_of("abc"))


@pytest.fixture
def caller() -> Caller:
    return caller_in()


def test_health_needs_no_token() -> None:
    app = build_app(settings_in("dev"), Unreachable())

    answer = app.handle(json.loads((EVENTS / "health.json").read_text()))

    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == {"status": "ok", "version": "0.1.0"}


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/", "/v1/user", "/v1/users/", "/v1//users", "/v2/users", "/V1/users"])
def test_unknown_path_is_404(caller: Caller, path: str) -> None:
    answer = caller.get(path)

    assert (answer.status, answer.code) == (404, "no_such_route")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/users", "GET, POST, HEAD"),
        ("PUT", "/v1/users", "GET, POST, HEAD"),
        ("POST", "/v1/users/1", "GET, PUT, PATCH, DELETE, HEAD"),
        ("OPTIONS", "/v1/users/1", "GET, PUT, PATCH, DELETE, HEAD"),
        ("POST", "/v1/health", "GET, HEAD"),
        ("BREW", "/v1/users", "GET, POST, HEAD"),
    ],
)
def test_unknown_method_is_405_and_names_the_known_ones(caller: Caller, method: str, path: str, allowed: str) -> None:
    answer = caller.send(method, path)

    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", allowed)


def test_head_answers_as_get_without_a_body(caller: Caller) -> None:
    head = caller.send("HEAD", "/v1/health")

    assert (head.status, head.content) == (200, b"")
    assert head.headers["content-type"] == "application/json"


def test_a_request_without_claims_is_401_with_the_scheme(caller: Caller) -> None:
    answer = Caller(caller.app, None).get("/v1/users")

    assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")


def test_request_without_a_tenant_is_403(caller: Caller) -> None:
    answer = Caller(caller.app, {"sub": "u-1"}).get("/v1/users")

    assert (answer.status, answer.code) == (403, "tenant_missing")


def test_other_media_types_are_415(caller: Caller) -> None:
    posted = caller.post("/v1/users", body=b"<a/>", headers={"content-type": "text/xml"})
    untyped = caller.post("/v1/users", body=b"{}")
    patched = caller.patch("/v1/users/1", body=b"[]", headers={"content-type": "application/patch+json"})

    assert [answer.code for answer in (posted, untyped, patched)] == ["unsupported_media_type"] * 3
    assert (
        patched.headers["accept-patch"] == "application/merge-patch+json, application/json-patch+json, application/json"
    )


def test_media_type_may_have_parameters_and_capitals(caller: Caller) -> None:
    answer = caller.post("/v1/users", {}, headers={"content-type": "Application/JSON; charset=utf-8"})

    assert answer.fields == {"email": "missing", "display_name": "missing"}


@pytest.mark.parametrize("document", [[], "x", 1, None])
def test_body_must_be_an_object(caller: Caller, document: Any) -> None:
    answer = caller.post("/v1/users", body=json.dumps(document).encode(), headers={"content-type": "application/json"})

    assert answer.fields == {"": "object_type"}


def test_an_unexpected_error_only_reveals_the_request_id(caller: Caller, capfd: pytest.CaptureFixture[str]) -> None:
    answer = caller.get("/v1/users/1")

    assert (answer.status, answer.code, answer.json["request_id"]) == (500, "internal_error", "request-1")
    assert b"secret" not in answer.content
    del capfd


def test_every_answer_carries_the_request_id(caller: Caller) -> None:
    assert caller.get("/v1/health").headers["x-request-id"] == "request-1"
    assert caller.get("/v1/nowhere").headers["x-request-id"] == "request-1"


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"version": "1.0", "path": "/v1/health"}, [], None])
def test_anything_but_an_http_event_is_400(caller: Caller, event: Any) -> None:
    answer = caller.app.handle(event)

    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["code"] == "malformed_event"


def test_stage_in_the_path_is_left_out() -> None:
    caller = caller_in()
    event = caller.event("GET", "/live/v1/health")
    event["requestContext"]["stage"] = "live"

    assert caller.app.handle(event)["statusCode"] == 200


def test_the_swagger_page_loads_its_parts_by_relative_paths(caller: Caller) -> None:
    page = caller.get("/v1/docs")
    script = caller.get("/v1/docs/swagger-ui.js", headers={"accept-encoding": "br, gzip"})
    style = caller.get("/v1/docs/swagger-ui.css", headers={"accept-encoding": "gzip;q=0"})

    assert page.headers["content-type"].startswith("text/html")
    assert all(part in page.content for part in (b"docs/swagger-ui.js", b"docs/swagger-ui.css", b"openapi.json"))
    assert script.headers["content-encoding"] == "gzip"
    assert b"SwaggerUIBundle" in gzip.decompress(script.content)
    assert len(script.content) < 600_000
    assert "content-encoding" not in style.headers
    assert b".swagger-ui" in style.content
    assert "max-age" in style.headers["cache-control"]


@pytest.mark.parametrize("path", ["/v1/openapi.json", "/v1/docs", "/v1/docs/swagger-ui.js"])
def test_production_serves_no_documentation(path: str) -> None:
    assert caller_in("prod").get(path).status == 404


def test_missing_setting_is_named() -> None:
    with pytest.raises(ConfigurationError, match="TABLE_NAME"):
        Settings.from_env({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENVIRONMENT", "staging"),
        ("TENANT_CLAIM", ""),
        ("TENANT_PATTERN", ""),
        ("TENANT_PATTERN", "^.*$"),
        ("TOPOLOGY_LEASE_SECONDS", "soon"),
        ("TOPOLOGY_LEASE_SECONDS", "0"),
        ("GROWTH_MODE", "perhaps"),
        ("TRANSPORT", "pigeon"),
        ("GROWTH_COOLDOWN_SECONDS", "0"),
        ("GROWTH_COOLDOWN_SECONDS", "often"),
        ("GROWTH_QUIET_SECONDS", "299"),
        ("GROWTH_QUIET_SECONDS", "nan"),
        ("GROWTH_MOST_MINUTES", "0"),
        ("GROWTH_MOVER_SHARE", "2"),
        ("TOPOLOGY_CLOCK_SECONDS", "nan"),
        ("TOPOLOGY_LEASE_SECONDS", "inf"),
        ("MAX_QUERIES_PER_REQUEST", "inf"),
        ("CURSOR_KEYS", "secret"),
        ("CURSOR_KEYS", "[]"),
        ("CURSOR_KEYS", '[""]'),
        ("CURSOR_KEYS", '{"a": 1}'),
        ("CURSOR_KEYS", ""),
        ("IDEMPOTENCY_TABLE", ""),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_wrong_setting_is_named(name: str, value: str) -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["key"]'}
    Settings.from_env(environ)

    with pytest.raises(ConfigurationError, match=name):
        Settings.from_env({**environ, name: value})


@pytest.mark.parametrize(
    ("variables", "environment"),
    [
        ({"ENVIRONMENT": "prod", "ENVIRONMENT_NAME": "stage"}, "stage"),
        ({"ENVIRONMENT": "prod"}, "prod"),
        ({"ENVIRONMENT": "local"}, ""),
    ],
)
def test_commands_in_reports_of_growth_name_a_deployed_environment(variables: dict[str, str], environment: str) -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["key"]'}

    assert Settings.from_env({**environ, **variables}).growth.environment == environment


def test_an_error_of_growth_names_the_variables_at_fault_alone() -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["key"]'}

    with pytest.raises(ConfigurationError) as mode:
        Settings.from_env({**environ, "GROWTH_MODE": "perhaps"})
    with pytest.raises(ConfigurationError) as share:
        Settings.from_env({**environ, "GROWTH_MOVER_SHARE": "2"})

    assert str(mode.value) == "GROWTH_MODE: growth mode is 'perhaps'; use on, dry_run, off"
    assert str(share.value).startswith("GROWTH_MOST_MINUTES and GROWTH_MOVER_SHARE: growth most_minutes is 10 and")


@pytest.mark.parametrize(("text", "lines"), [("INFO", 1), ("warning", 0)])
def test_the_level_of_the_log_comes_from_the_environment(
    text: str, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["key"]'}
    settings = Settings.from_env({**environ, "ENVIRONMENT": "local", "LOG_LEVEL": text})

    Caller(build_app(settings, Unreachable())).get("/v1/health")

    assert len(capsys.readouterr().out.splitlines()) == lines


def test_settings_do_not_show_the_cursor_keys() -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["hidden"]'}

    assert "hidden" not in repr(Settings.from_env(environ))


def test_cursor_keys_come_from_one_place() -> None:
    environ = {"TABLE_NAME": "t", "TOPOLOGY_TABLE": "u", "IDEMPOTENCY_TABLE": "v", "CURSOR_KEYS": '["key"]'}

    with pytest.raises(ConfigurationError, match="CURSOR_SECRET_ARN"):
        Settings.from_env({**environ, "CURSOR_SECRET_ARN": "arn:aws:secretsmanager:x"})
