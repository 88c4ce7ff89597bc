"""The local gateway: requests that it answers itself, and requests for a function."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.functions.local_function import FunctionError, OverloadedError, PayloadTooLargeError
from dynashard_local.gateway.events import HttpRequest, HttpResponse
from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.routes import Authorizer, Cors, Route, RouteTable

pytestmark = pytest.mark.unit

NOW = 1_700_000_000
ROUTES = (
    Route("GET /v1/health", "f"),
    Route("GET /v1/admin", "f", Authorizer(("dynashard",)), ("admin",)),
    Route("GET /v1/{collection}", "f", Authorizer(("dynashard",)), expensive=True),
    Route("ANY /v1/{proxy+}", "f", Authorizer(("dynashard",))),
)


class Recorder:
    """A function that keeps its events, and answers or raises as the test sets it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.events: list[Mapping[str, Any]] = []
        self.expensive: list[bool] = []

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        assert event["requestContext"]["requestId"] == request_id
        self.expensive.append(expensive)
        self.events.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return Issuer(key, "http://127.0.0.1/local", "dynashard", clock=lambda: NOW)


def gateway_of(
    issuer: Issuer, function: Recorder, *, cors: Cors | None = None, reports: list[str] | None = None
) -> Gateway:
    lines: list[str] = [] if reports is None else reports
    return Gateway(
        RouteTable(ROUTES, cors or Cors()),
        issuer,
        {"f": function},
        report=lines.append,
        clock=lambda: NOW,
        new_id=lambda: "request-1",
    )


def ask(
    gateway: Gateway,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> HttpResponse:
    return asyncio.run(gateway.answer(HttpRequest(method, path, headers=headers, body=body)))


def message(response: HttpResponse) -> Any:
    return json.loads(response.body)["message"]


def test_a_request_with_a_token_reaches_the_function_with_its_claims(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 201, "headers": {"ETag": "1"}, "body": "{}"})
    token = issuer.issue({"tenant_id": "abc", "scope": "a b"})

    response = ask(gateway_of(issuer, function), "POST", "/v1/users", [("Authorization", f"Bearer {token}")])

    assert (response.status, response.body) == (201, b"{}")
    assert ("apigw-requestid", "request-1") in response.headers
    (event,) = function.events
    assert event["routeKey"] == "ANY /v1/{proxy+}"
    assert event["requestContext"]["authorizer"]["jwt"]["claims"]["tenant_id"] == "abc"
    assert event["requestContext"]["authorizer"]["jwt"]["scopes"] == ["a", "b"]


def test_a_route_without_an_authorizer_needs_no_token_and_gets_no_claims(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 200})

    response = ask(gateway_of(issuer, function), "GET", "/v1/health")

    assert response.status == 200
    assert "authorizer" not in function.events[0]["requestContext"]


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], "Bearer"),
        (
            [("Authorization", "Bearer a.b.c")],
            'Bearer scope="" error="invalid_token"',
        ),
    ],
)
def test_a_missing_or_wrong_token_is_401_as_on_aws_and_never_reaches_the_function(
    issuer: Issuer, headers: list[tuple[str, str]], challenge: str
) -> None:
    function = Recorder({"statusCode": 200})

    response = ask(gateway_of(issuer, function), "GET", "/v1/users", headers)

    assert (response.status, message(response)) == (401, "Unauthorized")
    assert dict(response.headers)["www-authenticate"].startswith(challenge)
    assert function.events == []


def test_a_token_without_the_routes_scope_is_403(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 200})
    gateway = gateway_of(issuer, function)

    without = ask(gateway, "GET", "/v1/admin", [("authorization", issuer.issue({"scope": "other"}))])
    with_it = ask(gateway, "GET", "/v1/admin", [("authorization", issuer.issue({"scp": ["other", "admin"]}))])

    assert (without.status, message(without)) == (403, "Forbidden")
    assert with_it.status == 200


def test_a_path_without_a_route_is_404(issuer: Issuer) -> None:
    response = ask(gateway_of(issuer, Recorder({})), "GET", "/v2/users")

    assert (response.status, message(response)) == (404, "Not Found")


def test_a_large_request_is_refused_before_the_function(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 200})
    gateway = gateway_of(issuer, function)

    body = ask(gateway, "GET", "/v1/health", body=b"x" * (10 * 1024 * 1024 + 1))
    headers = ask(gateway, "GET", "/v1/health", [("a", "x" * 10_240)])

    assert (body.status, message(body)) == (413, "Request Entity Too Large")
    assert (headers.status, message(headers)) == (431, "Request Header Fields Too Large")
    assert function.events == []


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (FunctionError("the function raised an error"), 500, "Internal Server Error"),
        ({"statusCode": "many"}, 500, "Internal Server Error"),
        (PayloadTooLargeError(), 413, "Request Entity Too Large"),
    ],
)
def test_a_failing_function_gives_the_answer_of_the_gateway(
    issuer: Issuer, answer: Any, status: int, text: str
) -> None:
    reports: list[str] = []

    response = ask(gateway_of(issuer, Recorder(answer), reports=reports), "GET", "/v1/health")

    assert (response.status, message(response)) == (status, text)
    assert [line.startswith("GET /v1/health: ") for line in reports] == ([True] if status == 500 else [])


def test_only_the_gateway_handles_cors(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 200, "headers": {"Access-Control-Allow-Origin": "*"}})
    cors = Cors(origins=("https://a",), methods=("GET",), headers=("authorization",), max_age_seconds=1)
    gateway = gateway_of(issuer, function, cors=cors)

    preflight = ask(gateway, "OPTIONS", "/v1/users", [("Origin", "https://a")])
    allowed = ask(gateway, "GET", "/v1/health", [("Origin", "https://a")])
    foreign = ask(gateway, "GET", "/v1/health", [("Origin", "https://b")])

    assert preflight.status == 204
    assert dict(preflight.headers)["access-control-allow-headers"] == "authorization"
    assert dict(allowed.headers)["access-control-allow-origin"] == "https://a"
    assert "access-control-allow-origin" not in dict(foreign.headers)
    assert len(function.events) == 2


def test_an_overloaded_function_is_503_with_retry_after(issuer: Issuer) -> None:
    reports: list[str] = []

    response = ask(gateway_of(issuer, Recorder(OverloadedError()), reports=reports), "GET", "/v1/health")

    assert (response.status, message(response)) == (503, "Service Unavailable")
    assert dict(response.headers)["retry-after"] == "1"
    assert reports == []


def test_only_calls_of_a_limited_route_are_expensive(issuer: Issuer) -> None:
    function = Recorder({"statusCode": 200})
    gateway = gateway_of(issuer, function)
    token = [("Authorization", f"Bearer {issuer.issue({}, subject='me', lifetime_seconds=60)}")]

    for method, path in (("GET", "/v1/users"), ("POST", "/v1/users"), ("GET", "/v1/users/7"), ("GET", "/v1/health")):
        ask(gateway, method, path, token)

    assert function.expensive == [True, False, False, False]
