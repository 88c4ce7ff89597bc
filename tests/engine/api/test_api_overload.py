"""While DynamoDB throttles, listings are refused, single items are served, and each request logs one line."""

import json
from collections.abc import Iterator

import pytest

from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport, lost_request, throttled
from dynashard.transport import Transport
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine

REASON = "TableReadMaxOnDemandThroughputExceeded"


@pytest.fixture
def refusing(transport: Transport, table: str) -> Iterator[Caller]:
    """An API all of whose listings DynamoDB throttles."""
    faulty = FaultyTransport(transport, [throttled("Query", reason=REASON, nth=None)])
    yield caller_on(faulty, table, runtime=Runtime(random=lambda: 0.0))
    assert faulty.sent("Query") > 0


def test_listings_are_refused_and_single_items_are_served(refusing: Caller) -> None:
    created = refusing.post("/v1/users", a_user(id="1"))
    first = refusing.get("/v1/users")

    many = {path: refusing.get(path) for path in ("/v1/users", "/v1/on-call", "/v1/follows", "/v1/roll-ups")}
    answers = {**many, **{path: refusing.get(path) for path in ("/v1/users/1", "/v1/health")}}

    assert created.status == 201
    assert first.status == 429
    assert {path: answer.status for path, answer in answers.items()} == {
        "/v1/users": 503,
        "/v1/on-call": 503,
        "/v1/follows": 503,
        "/v1/roll-ups": 503,
        "/v1/users/1": 200,
        "/v1/health": 200,
    }
    assert answers["/v1/users"].code == "overloaded"
    assert int(answers["/v1/users"].headers["retry-after"]) >= 1


def test_direct_invocation_refuses_the_same_operations(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [throttled("Query", reason=REASON, nth=None)])
    service = Service(commands_on(faulty, table, runtime=Runtime(random=lambda: 0.0)))
    service.result("create", item=a_user(id="1"))

    first = service.error("list")
    second, single = service.error("list"), service.result("get", key={"id": "1"})

    assert first["code"] in ("throttled", "table_throttled")
    assert (second["code"], second["retry_after"]) == ("overloaded", 1)
    assert single["id"] == "1"


def test_an_expected_server_error_writes_one_log_line(
    transport: Transport, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    caller = caller_on(FaultyTransport(transport, [lost_request("GetItem", nth=None)]), table)
    capsys.readouterr()

    answer = caller.get("/v1/users/1")

    [line] = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert answer.status == 503
    assert (line["level"], line["code"]) == ("ERROR", "engine_unavailable")
    assert line["error"].startswith("EngineUnavailableError: ")
