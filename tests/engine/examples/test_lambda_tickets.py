"""The example of a Lambda function that is not ours: its resolver, its tables, and its worker for shard counts."""

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from dynashard import connect, definition
from dynashard.resharding import Scope
from dynashard.tables import create_tables

pytestmark = pytest.mark.engine

TABLE, COUNTS = "tickets", "ticket-counts"


def context(*left: int) -> Any:
    """Return the context of a call, with the milliseconds that are left each time it is asked."""
    times = list(left)
    return SimpleNamespace(
        function_name="tickets",
        memory_limit_in_mb=256,
        invoked_function_arn="arn:aws:lambda:eu-west-1:123456789012:function:tickets",
        aws_request_id="1",
        get_remaining_time_in_millis=lambda: times.pop(0) if len(times) > 1 else times[0],
    )


@pytest.fixture(scope="module")
def module(example: Callable[[str], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TABLE_NAME": TABLE, "TOPOLOGY_TABLE": COUNTS, "CURSOR_KEY": "16 bytes or more"}.items():
            patch.setenv(name, value)
        transport = connect()
        create_tables(transport, table=TABLE, topology_table=COUNTS)
        transport.close()
        return example("lambda_tickets")


def called(module: Any, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
    """Call the function as an HTTP API does."""
    event: Mapping[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in query.items()),
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "1"},
        "queryStringParameters": query or None,
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }
    answer = module.handler(event, context(30_000))
    return answer["statusCode"], json.loads(answer["body"])


def test_tickets_are_created_read_and_listed_by_cursor(module: Any) -> None:
    made = [called(module, "POST", "/tickets", {"team": "web", "title": f"t{n}"}) for n in range(25)]
    first = called(module, "GET", "/teams/web/tickets")
    second = called(module, "GET", "/teams/web/tickets", cursor=first[1]["cursor"])

    assert {status for status, _ in made} == {201}
    assert called(module, "GET", f"/teams/web/tickets/{made[0][1]['id']}") == (200, made[0][1])
    assert (len(first[1]["items"]), len(second[1]["items"]), second[1]["cursor"]) == (20, 5, None)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("GET", "/teams/web/tickets/none", None), (404, {"code": "not_found"})),
        (("POST", "/tickets", {"team": "a:b", "title": "t"}), (422, {"code": "invalid_key"})),
    ],
)
def test_errors_have_the_status_and_code_of_the_tree(module: Any, call: Any, expected: Any) -> None:
    assert called(module, *call) == expected


def test_the_worker_takes_changes_up_and_stops_when_its_time_is_over(module: Any) -> None:
    scope = Scope(definition(module.Ticket), "ticket.v1.Ticket:ops")
    called(module, "POST", "/tickets", {"team": "ops", "title": "t"})
    requested = module.db.resharder().start(scope, 8)

    module.reshard({}, context(20_000, 20_000, 10_000))

    status = module.db.resharder().status(scope)
    assert (requested.waits_for, status.waits_for, status.target) == ("worker", "clients", 8)
