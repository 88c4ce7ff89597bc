"""The log lines and metrics of a request."""

import json
from typing import Any

import pytest

from dynashard.transport.interface import Consumed, Meter
from dynashard_serving.growth_policy import GrowthEvent, Report
from functions.api.observing import Observed, Observer

pytestmark = pytest.mark.unit


def _meter() -> Meter:
    meter = Meter()
    meter.record("Query", Consumed(read_units=2.5, requests=1))
    meter.record("PutItem", Consumed(write_units=3, requests=1))
    meter.throttled("TableWriteKeyRangeThroughputExceeded")
    return meter


def _observed(**changes: Any) -> Observed:
    values: dict[str, Any] = {
        "request_id": "r-1",
        "method": "GET",
        "route": "/v1/users/{id}",
        "status": 200,
        "tenant": "abc",
        "milliseconds": 12.34,
        "meter": _meter(),
    }
    return Observed(**(values | changes))


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_metrics_of_a_request_are_one_record_of_the_embedded_format(capsys: pytest.CaptureFixture[str]) -> None:
    Observer("dev", metrics=True).answered(_observed())

    [record] = [line for line in _lines(capsys) if "_aws" in line]
    [directive] = record["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Dynashard"
    assert sorted(directive["Dimensions"][0]) == ["environment", "service"]
    assert {metric["Name"]: record[metric["Name"]] for metric in directive["Metrics"]} == {
        "ReadUnits": [2.5],
        "WriteUnits": [3.0],
        "Latency": [12.34],
        "ServerErrors": [0.0],
        "OutcomeUnknown": [0.0],
        "QueriesPerPage": [1.0],
        "ThrottlesTableWriteKeyRangeThroughputExceeded": [1.0],
    }
    assert (record["tenant"], record["route"], record["request_id"]) == ("abc", "GET /v1/users/{id}", "r-1")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"items": 40}, {"ItemsListed": [40.0], "ListingReadUnits": [2.5]}),
        ({"status": 400, "code": "invalid_cursor"}, {"CursorErrors": [1.0], "ServerErrors": [0.0]}),
        ({"status": 503, "code": "overloaded"}, {"Shed": [1.0], "ServerErrors": [1.0], "OutcomeUnknown": [0.0]}),
        ({"status": 503, "code": "outcome_unknown"}, {"ServerErrors": [1.0], "OutcomeUnknown": [1.0]}),
    ],
)
def test_pages_cursors_and_outcomes_have_metrics(
    capsys: pytest.CaptureFixture[str], changes: dict[str, Any], wanted: dict[str, Any]
) -> None:
    Observer("dev", metrics=True).answered(_observed(**changes))

    [record] = [line for line in _lines(capsys) if "_aws" in line]
    written = {metric["Name"] for metric in record["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert {name: record[name] for name in written}.items() >= wanted.items()
    # What never happens costs no metric.
    assert ({"CursorErrors", "Shed", "ItemsListed"} & written) == ({"CursorErrors", "Shed", "ItemsListed"} & {*wanted})


def test_no_metrics_are_written_without_a_reader(capsys: pytest.CaptureFixture[str]) -> None:
    Observer("local", metrics=False).answered(_observed())

    assert not [line for line in _lines(capsys) if "_aws" in line]


def test_log_line_names_request_tenant_route_status_and_units(caplog: pytest.LogCaptureFixture) -> None:
    Observer("dev", metrics=False).answered(_observed(status=404, code="not_found"))

    [record] = caplog.records
    seen = vars(record)
    wanted = {"request_id": "r-1", "tenant": "abc", "route": "/v1/users/{id}", "status": 404, "code": "not_found"}
    assert wanted.items() <= seen.items()
    assert (seen["read_units"], seen["write_units"], seen["requests"]) == (2.5, 3, 2)


def test_unexpected_error_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="reason") as raised:
        int("the reason")

    Observer("dev", metrics=False).failed("r-1", raised.value)

    assert "the reason" in caplog.text
    assert "Traceback" in caplog.text


def test_growth_events_have_a_log_line_and_a_metric_of_their_own(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    report = Report(GrowthEvent.WOULD_ASK, "user.v1.User", "user.v1.User:abc", None, "dry run: 16 to 32", 32)

    Observer("dev", metrics=True).grew(report)

    [logged] = caplog.records
    wanted = {"outcome": "would_ask", "partition": "user.v1.User:abc", "target": 32, "reason": "dry run: 16 to 32"}
    assert wanted.items() <= vars(logged).items()
    [record] = [line for line in _lines(capsys) if "_aws" in line]
    [directive] = record["_aws"]["CloudWatchMetrics"]
    assert ([metric["Name"] for metric in directive["Metrics"]], record["GrowthWouldAsk"]) == (
        ["GrowthWouldAsk"],
        1,
    )
    assert record["environment"] == "dev"
