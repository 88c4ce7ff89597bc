"""Paths and answers are those of Powertools' resolver."""

from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler import Response as PowertoolsResponse
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from dynashard_serving.api.app import build_app
from dynashard_serving.api.request import path_of
from dynashard_serving.api.response import Response, gateway_answer, takes_gzip
from tests.api_caller import Caller
from tests.unit.api.test_api_routes import Unreachable, settings_in

pytestmark = pytest.mark.unit


def as_powertools(response: Response[Any]) -> PowertoolsResponse[Any]:
    return PowertoolsResponse(response.status_code, response.content_type, response.body, {**response.headers})


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
    resolver.get("/v1/x")(lambda: as_powertools(response))
    event = Caller(build_app(settings_in("dev"), Unreachable())).event("GET", "/v1/x")

    ours = gateway_answer(response)

    assert ours == resolver.resolve(event, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("stage", "path"), [("$default", "/v1/users"), ("live", "/live/v1/users"), ("live", "/live")])
def test_a_path_is_the_one_that_powertools_reads(stage: str, path: str) -> None:
    event = {"rawPath": path, "requestContext": {"stage": stage}}

    assert path_of(event) == APIGatewayProxyEventV2(event).path


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("*;q=0, gzip", True),
        ("gzip;q=0, *", False),
        ("*, gzip;q=0", False),
        ("br, identity", False),
        ("", False),
    ],
)
def test_gzip_is_taken_as_the_client_says_of_it_before_what_it_says_of_others(accepted: str, *, takes: bool) -> None:
    assert takes_gzip(accepted) is takes
