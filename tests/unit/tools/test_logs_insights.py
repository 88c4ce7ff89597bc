"""Saved queries run over lines of a local stack as CloudWatch runs them over its logs."""

import json
from typing import Any

import pytest

from dynashard_cdk.saved_queries import QUERIES
from dynashard_tools.failure import CommandError
from dynashard_tools.logs.insights import record_of, run_query

pytestmark = pytest.mark.unit


def line(at: str, **members: Any) -> dict[str, Any]:
    return record_of("api", f"2026-11-23 {at}.000", json.dumps({"message": "request", **members}))


REQUESTS = [
    line("10:00:01", tenant="abc", method="GET", route="/v1/users", status=200, read_units=8, milliseconds=10.0),
    line("10:00:40", tenant="abc", method="GET", route="/v1/users", status=500, read_units=2, milliseconds=30.0),
    line("10:01:00", tenant="xyz", method="PUT", route="/v1/users/{id}", status=503, code="outcome_unknown"),
    record_of("api", "2026-11-23 10:01:01.000", "Traceback (most recent call last):"),
]


@pytest.mark.parametrize("name", QUERIES)
def test_every_saved_query_is_understood(name: str) -> None:
    assert isinstance(run_query(QUERIES[name].text, REQUESTS), list)


def test_server_errors_are_found_newest_first() -> None:
    rows = run_query(QUERIES["server-errors"].text, REQUESTS)

    assert [(row["tenant"], row["status"]) for row in rows] == [("xyz", "503"), ("abc", "500")]
    assert "code" not in rows[1]


def test_requests_are_counted_by_tenant_and_route() -> None:
    [row] = run_query(QUERIES["expensive-listings"].text, REQUESTS)

    assert row == {"tenant": "abc", "route": "/v1/users", "requests": "2", "reads": "10", "most": "8"}


def test_lines_that_are_not_json_are_found_by_a_pattern() -> None:
    [row] = run_query(QUERIES["function-errors"].text, REQUESTS)

    assert row["@message"].startswith("Traceback")


def test_growth_events_are_parsed_out_of_the_text_of_a_line() -> None:
    event = {"event": "growth", "outcome": "asked", "entity": "user.v1.User", "partition": "abc", "reason": "hot"}
    logged = f"[WARNING] {json.dumps(event)}"

    [row] = run_query(QUERIES["growth"].text, [record_of("writer", "2026-11-23 10:00:00.000", logged)])

    assert row == {"event": "asked", "entity": "user.v1.User", "partition": "abc", "events": "1", "reason": "hot"}


def test_the_lag_of_the_stream_is_shown_by_minute() -> None:
    batches = [line(at, ChangesLagSeconds=lag, ChangesHandled=1) for at, lag in (("10:00:01", 3), ("10:00:59", 5))]

    [row] = run_query(QUERIES["stream"].text, batches)

    assert row == {"minute": "2026-11-23 10:00:00.000", "lag": "5", "handled": "2", "again": "0", "dead": "0"}


@pytest.mark.parametrize(
    ("condition", "statuses"),
    [
        ('status >= 500 and tenant = "abc"', [500]),
        ('status < 300 or (tenant = "xyz" and status = 503)', [200, 503]),
        ('status in ["200", "503"]', [200, 503]),
        ("ispresent(code)", [503]),
        ("method like /^G/", [200, 500]),
        ('tenant != "abc"', [503]),
    ],
)
def test_conditions_choose_lines(condition: str, statuses: list[int]) -> None:
    rows = run_query(f"filter {condition}\n| fields status", REQUESTS)

    assert [int(row["status"]) for row in rows if "status" in row] == statuses


def test_a_percentile_and_an_average_are_of_the_values() -> None:
    lines = [line("10:00:00", milliseconds=float(value)) for value in range(1, 101)]

    [row] = run_query(
        "filter ispresent(milliseconds)\n| stats pct(milliseconds, 99) as p, avg(milliseconds) as a", lines
    )

    assert row == {"p": "100.0", "a": "50.5"}


@pytest.mark.parametrize(
    "text", ["dedup tenant", "stats stddev(status)", "filter status % 2 = 1", "parse @message 'glob*' as x"]
)
def test_what_is_not_known_here_is_reported(text: str) -> None:
    with pytest.raises(CommandError, match="runs in CloudWatch only"):
        run_query(text, REQUESTS)
