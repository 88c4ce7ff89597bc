"""Routes, authorizers and CORS, read from the template."""

from typing import Any

import pytest

from dynashard_local.errors import LocalStackError
from dynashard_local.routes import FROM_THIS_MACHINE, Authorizer, Cors, Route, RouteTable, route_table
from dynashard_local.template import Templates

pytestmark = pytest.mark.unit


def api_stack(*, authorization: str = "JWT", cors: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a stack as CDK writes it, with an audience from another stack."""
    route = {
        "AuthorizationType": authorization,
        "AuthorizerId": {"Ref": "Jwt"},
        "RouteKey": "ANY /v1/{proxy+}",
        "Target": {"Fn::Join": ["", ["integrations/", {"Ref": "Integration"}]]},
        "AuthorizationScopes": ["users"],
    }
    open_route = {**route, "AuthorizationType": "NONE", "RouteKey": "GET /v1/health"}
    jwt = {"Issuer": "https://x", "Audience": [{"Fn::ImportValue": "Data:Audience"}, "second"]}
    return {
        "Resources": {
            "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"CorsConfiguration": cors} if cors else {}},
            "Jwt": {"Type": "AWS::ApiGatewayV2::Authorizer", "Properties": {"JwtConfiguration": jwt}},
            "Function": {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "functions.api.handler.handler"}},
            "Integration": {
                "Type": "AWS::ApiGatewayV2::Integration",
                "Properties": {"IntegrationUri": {"Fn::GetAtt": ["Function", "Arn"]}},
            },
            "Proxy": {"Type": "AWS::ApiGatewayV2::Route", "Properties": route},
            "Health": {"Type": "AWS::ApiGatewayV2::Route", "Properties": open_route},
        }
    }


DATA_STACK = {"Resources": {}, "Outputs": {"A": {"Value": "first", "Export": {"Name": "Data:Audience"}}}}


def test_the_routes_of_the_template_have_their_function_and_authorizer() -> None:
    table = route_table(Templates({"Api": api_stack(), "Data": DATA_STACK}))

    assert [(route.key, route.function) for route in table.routes] == [
        ("GET /v1/health", "Api-Function"),
        ("ANY /v1/{proxy+}", "Api-Function"),
    ]
    assert [route.authorizer for route in table.routes] == [None, Authorizer(("first", "second"))]
    assert table.routes[1].scopes == ("users",)
    assert table.audience == ("first", "second")
    assert table.cors == FROM_THIS_MACHINE


def test_an_authorization_that_the_local_gateway_cannot_check_is_refused() -> None:
    with pytest.raises(LocalStackError, match="has authorization AWS_IAM, which the local gateway does not have"):
        route_table(Templates({"Api": api_stack(authorization="AWS_IAM"), "Data": DATA_STACK}))


def test_a_template_without_routes_is_refused() -> None:
    with pytest.raises(LocalStackError, match="nothing to serve"):
        route_table(Templates({"Data": DATA_STACK}))


def test_cors_is_read_from_the_template() -> None:
    declared = {"AllowOrigins": ["https://a"], "AllowMethods": ["GET"], "AllowHeaders": ["etag"], "MaxAge": 60}

    cors = route_table(Templates({"Api": api_stack(cors=declared), "Data": DATA_STACK})).cors

    assert cors.lines("https://b") == []
    assert dict(cors.preflight("https://a")) == {
        "access-control-allow-origin": "https://a",
        "vary": "origin",
        "access-control-allow-methods": "GET",
        "access-control-allow-headers": "etag",
        "access-control-max-age": "60",
    }


def table_of(*keys: str) -> RouteTable:
    return RouteTable(sorted((Route(key, "f") for key in keys), key=lambda route: route.rank))


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/v1/users", "GET /v1/users", {}),
        ("GET", "/v1/users/", "GET /v1/users", {}),
        ("POST", "/v1/users", "ANY /v1/{proxy+}", {"proxy": "users"}),
        ("GET", "/v1/users/7", "ANY /v1/users/{id}", {"id": "7"}),
        ("GET", "/v1/users/{id}", "ANY /v1/users/{id}", {"id": "{id}"}),
        ("GET", "/v1/{proxy+}", "ANY /v1/{proxy+}", {"proxy": "{proxy+}"}),
        ("GET", "/v1/users/me", "GET /v1/users/me", {}),
        ("PUT", "/v1/users/me", "ANY /v1/users/{id}", {"id": "me"}),
        ("GET", "/v1/a/b/c", "ANY /v1/{proxy+}", {"proxy": "a/b/c"}),
        ("GET", "/other", "$default", {}),
        ("GET", "/", "$default", {}),
    ],
)
def test_the_most_specific_route_wins(method: str, path: str, key: str, parameters: dict[str, str]) -> None:
    table = table_of("$default", "ANY /v1/{proxy+}", "ANY /v1/users/{id}", "GET /v1/users/me", "GET /v1/users")

    found = table.match(method, path)

    assert found is not None
    assert (found[0].key, found[1]) == (key, parameters)


@pytest.mark.parametrize("path", ["/v1", "/v2/users", "/", "/v1/users/1/more", "/v1/users/"])
def test_a_path_without_a_route_matches_none(path: str) -> None:
    assert table_of("GET /v1/users/{id}").match("GET", path) is None


@pytest.mark.parametrize("origin", ["http://localhost:5173", "https://127.0.0.1", "http://localhost"])
def test_pages_of_this_machine_may_call_by_default(origin: str) -> None:
    lines = dict(FROM_THIS_MACHINE.preflight(origin))

    assert lines["access-control-allow-origin"] == origin
    # A wildcard does not include this header.
    assert "authorization" in lines["access-control-allow-headers"]


@pytest.mark.parametrize(
    "origin", ["https://example.com", "http://localhost.example.com", "null", "http://127.0.0.1.a:80"]
)
def test_other_pages_may_not_call_by_default(origin: str) -> None:
    assert FROM_THIS_MACHINE.preflight(origin) == []


def test_origins_of_the_template_replace_those_of_this_machine() -> None:
    named = Cors(origins=("https://app.example.com",))

    assert named.lines("https://app.example.com")
    assert named.lines("http://localhost:5173") == []
