"""The route table and the answers agree with those of Powertools' resolver."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from dynashard_serving.api.answers import answer_of, path_of
from dynashard_serving.api.app import App, build_app
from dynashard_serving.api.resolver import powertools_response
from dynashard_serving.api.responses import Response
from tests.api_caller import Caller
from tests.unit.api.test_api_routes import Unreachable, settings_in

pytestmark = pytest.mark.unit

PATHS = (
    "/v1/health",
    "/v1/health/",
    "/v1/docs",
    "/v1/docs/swagger-ui.css",
    "/v1/docs/other",
    "/v1/users",
    "/v1/users/",
    "/v1/users/a",
    "/v1/users/a/b",
    "/v1/users/a\nb",
    "/v1/users-of",
    "/v1/on-call",
    "/v1/on-call/a",
    "/v1/follows",
    "/v1/follows/counts",
    "/v1/follows/a/b",
    "/v1/follows/a",
    "/v1/roll-ups",
    "/v1/revenue",
    "/v1",
    "/",
    "",
    "/v2/users",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def by_powertools(app: App, event: Mapping[str, Any]) -> dict[str, Any]:
    return app._resolver().resolve(event, None)


@pytest.mark.parametrize("path", PATHS)
def test_every_route_answers_as_powertools_resolver_does(path: str) -> None:
    app = build_app(settings_in("dev"), Unreachable())
    for claims in ({"tenant_id": "abc"}, None):
        for method in METHODS:
            event = Caller(app, claims).event(method, path, body=b"{}", headers={"content-type": "application/json"})

            assert app.handle(event) == by_powertools(app, event), (method, claims)


@pytest.mark.parametrize(
    "response",
    [
        Response(200, "application/json", '{"a": 1}', {"ETag": '"x"', "Vary": "Origin, Accept"}),
        Response(200, "text/css", b"body {}"),
        Response(204, body=""),
        Response(304, body=None),
    ],
    ids=["text", "bytes", "empty", "none"],
)
def test_an_answer_is_the_one_that_powertools_builds(response: Response[Any]) -> None:
    resolver = APIGatewayHttpResolver()
    resolver.get("/v1/x")(lambda: powertools_response(response))
    event = Caller(build_app(settings_in("dev"), Unreachable())).event("GET", "/v1/x")

    ours = answer_of(response)

    assert ours == resolver.resolve(event, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("stage", "path"), [("$default", "/v1/users"), ("live", "/live/v1/users"), ("live", "/live")])
def test_a_path_is_the_one_that_powertools_reads(stage: str, path: str) -> None:
    event = {"rawPath": path, "requestContext": {"stage": stage}}

    assert path_of(event) == APIGatewayProxyEventV2(event).path
