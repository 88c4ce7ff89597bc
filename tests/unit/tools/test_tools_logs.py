"""`dynashard logs`: saved queries are listed and run."""

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
from botocore.stub import Stubber

from dynashard_tools.failure import CommandError
from dynashard_tools.logs.cloudwatch import run, saved
from dynashard_tools.logs.sources import Lines

pytestmark = pytest.mark.unit

QUERY = {"name": "dynashard-dev/growth", "queryString": "fields @message", "logGroupNames": ["api"]}
PAST = (1_000, 4_600)
WANTED = {"logGroupNames": ["api"], "queryString": "fields @message", "startTime": 1_000, "endTime": 4_600}


@pytest.fixture
def stubbed() -> Iterator[tuple[Any, Stubber]]:
    client = botocore.session.get_session().create_client(
        "logs",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 -- never sent
    )
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


def test_the_queries_of_an_environment_are_found_on_all_pages(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    prefix = {"queryDefinitionNamePrefix": "dynashard-dev/"}
    other = {**QUERY, "name": "dynashard-dev/stream"}
    stub.add_response("describe_query_definitions", {"queryDefinitions": [QUERY], "nextToken": "t"}, prefix)
    stub.add_response("describe_query_definitions", {"queryDefinitions": [other]}, {**prefix, "nextToken": "t"})

    assert saved(client, "dev") == {"growth": QUERY, "stream": other}


def test_an_environment_without_monitoring_is_explained(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    stub.add_response("describe_query_definitions", {"queryDefinitions": []})

    with pytest.raises(CommandError, match="deploy the stack Dynashard-dev-Monitoring"):
        saved(client, "dev")


def test_a_query_of_the_gateways_log_is_refused_where_no_gateway_writes_one() -> None:
    with pytest.raises(CommandError, match="unauthorized reads the access log of the gateway, which no gateway of a"):
        Lines(lambda *_: iter([])).run("unauthorized", PAST)


def test_a_query_runs_over_its_window_until_it_is_complete(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    waited: list[float] = []
    row = [{"field": "tenant", "value": "abc"}, {"field": "@ptr", "value": "x"}]
    stub.add_response("start_query", {"queryId": "q"}, WANTED)
    stub.add_response("get_query_results", {"status": "Running", "results": []}, {"queryId": "q"})
    stub.add_response("get_query_results", {"status": "Complete", "results": [row]}, {"queryId": "q"})

    assert run(client, QUERY, PAST, waited.append) == [{"tenant": "abc"}]
    assert len(waited) == 1


def test_a_query_that_fails_is_reported(stubbed: tuple[Any, Stubber]) -> None:
    client, stub = stubbed
    stub.add_response("start_query", {"queryId": "q"}, WANTED)
    stub.add_response("get_query_results", {"status": "Timeout", "results": []}, {"queryId": "q"})

    with pytest.raises(CommandError, match="has ended as Timeout: try fewer --minutes"):
        run(client, QUERY, PAST, lambda _: None)
