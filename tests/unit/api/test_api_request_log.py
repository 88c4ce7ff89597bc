"""The log lines and metrics of a request."""

import json
import logging
import re
import sys
from typing import Any

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from dynashard.errors import InputError
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.transport.interface import Consumed, Meter
from dynashard_serving.api.request_log import ERROR, WARNING, Observed, Observer, RequestLines

pytestmark = pytest.mark.unit

TIMESTAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4}"


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
    assert (record["tenant"], record["method"], record["route"]) == ("abc", "GET", "/v1/users/{id}")
    assert record["request_id"] == "r-1"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"items": 40}, {"ItemsListed": [40.0], "ListingReadUnits": [2.5]}),
        ({"status": 400, "code": "invalid_cursor"}, {"CursorErrors": [1.0], "ServerErrors": [0.0]}),
        ({"status": 400, "code": "unsupported_cursor"}, {"CursorErrors": [1.0], "ServerErrors": [0.0]}),
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


def test_the_line_of_a_request_is_what_powertools_would_log_and_measure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    observed = _observed(status=503, code="overloaded", error="OverloadedError: \u00eb", items=7)

    Observer("dev", metrics=True).answered(observed)
    [ours] = _lines(capsys)
    _as_powertools(observed)
    logged, measured = _lines(capsys)

    assert ours.pop("_aws")["CloudWatchMetrics"] == measured.pop("_aws")["CloudWatchMetrics"]
    assert re.fullmatch(TIMESTAMP, ours["timestamp"])
    assert re.fullmatch(TIMESTAMP, logged["timestamp"])
    # The place in our code says nothing, and the route has the method beside it.
    expected = {**measured, **logged, "location": "answered", "timestamp": ours["timestamp"]}
    assert ours == expected
    assert [*ours][: len(logged) - 1] == [name for name in logged if name != "xray_trace_id"]


def _logger() -> logging.Logger:
    """Return a logger that writes as Powertools' does."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(LambdaPowertoolsFormatter(service="dynashard-api", serialize_stacktrace=False))
    logger = logging.Logger("as Powertools")  # noqa: LOG001 - one that no other test has configured
    logger.addHandler(handler)
    return logger


def _as_powertools(observed: Observed) -> None:
    """Write the log line and the metrics of a request with Powertools' own logger and metrics."""
    logged = {
        "request_id": observed.request_id,
        "tenant": observed.tenant,
        "method": observed.method,
        "route": observed.route,
        "status": observed.status,
        "code": observed.code,
        "error": observed.error,
        "milliseconds": 12.3,
        "read_units": 2.5,
        "write_units": 3.0,
        "requests": 2,
        "throttles": dict(observed.meter.throttles),
    }
    _logger().error("request", extra=logged)
    metrics = EphemeralMetrics(namespace="Dynashard", service="dynashard-api")
    metrics.add_dimension("environment", "dev")
    for name, unit, value in (
        ("ReadUnits", MetricUnit.Count, 2.5),
        ("WriteUnits", MetricUnit.Count, 3),
        ("Latency", MetricUnit.Milliseconds, 12.34),
        ("ServerErrors", MetricUnit.Count, 1),
        ("OutcomeUnknown", MetricUnit.Count, 0),
        ("Shed", MetricUnit.Count, 1),
        ("QueriesPerPage", MetricUnit.Count, 1),
        ("ItemsListed", MetricUnit.Count, 7),
        ("ListingReadUnits", MetricUnit.Count, 2.5),
        ("ThrottlesTableWriteKeyRangeThroughputExceeded", MetricUnit.Count, 1),
    ):
        metrics.add_metric(name=name, unit=unit, value=value)
    metrics.flush_metrics()


def test_log_line_names_request_tenant_route_status_and_units(capsys: pytest.CaptureFixture[str]) -> None:
    Observer("dev", metrics=False).answered(_observed(status=404, code="not_found"))

    [seen] = _lines(capsys)
    wanted = {"request_id": "r-1", "tenant": "abc", "route": "/v1/users/{id}", "status": 404, "code": "not_found"}
    assert wanted.items() <= seen.items()
    assert (seen["level"], seen["message"], "error" in seen) == ("INFO", "request", False)
    assert (seen["read_units"], seen["write_units"], seen["requests"]) == (2.5, 3, 2)


@pytest.mark.parametrize(("error", "lines"), [(None, 0), ("ThrottledError", 1)])
def test_the_level_of_the_log_hides_requests_unless_they_carry_metrics(
    capsys: pytest.CaptureFixture[str], error: str | None, lines: int
) -> None:
    observed = _observed(status=200, error=error)
    Observer("local", metrics=False, level=WARNING).answered(observed)
    hidden = _lines(capsys)
    Observer("dev", metrics=True, level=WARNING).answered(observed)

    assert len(hidden) == lines
    assert ["_aws" in line for line in _lines(capsys)] == [True]


def test_half_a_surrogate_pair_in_an_error_does_not_lose_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    Observer("dev", metrics=True).answered(_observed(status=500, error="ValueError: \ud800"))

    [line] = _lines(capsys)
    assert line["error"] == "ValueError: \\ud800"
    assert line["ServerErrors"] == [1.0]


def test_milliseconds_of_the_timestamp_follow_the_second() -> None:
    lines = RequestLines("dev", metrics=False)

    found = [json.loads(lines.line(_observed(), now))["timestamp"] for now in (1e9 + 0.0625, 1e9 + 0.5, 1e9 + 61.9375)]

    assert [each[17:23] for each in found] == ["40,062", "40,500", "41,937"]


def test_an_unexpected_error_is_logged_as_powertools_logs_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="reason") as raised:
        int("the reason")

    Observer("dev", metrics=False).failed("r-1", raised.value)
    [ours] = _lines(capsys)
    _logger().error("unexpected error", exc_info=raised.value, extra={"request_id": "r-1"})
    [theirs] = _lines(capsys)

    assert ours["exception"].startswith("Traceback")
    assert {**ours, "location": "", "timestamp": ""} == {**theirs, "location": "", "timestamp": ""}


@pytest.mark.parametrize(("error", "level"), [(RuntimeError("odd"), "ERROR"), (InputError("known"), "WARNING")])
def test_an_error_of_the_growth_policy_has_a_traceback_if_it_is_unexpected(
    error: Exception, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Observer("dev", metrics=True).growth_failed(error)

    [line] = _lines(capsys)
    assert (line["message"], line["level"], line["error"]) == (
        "growth failed",
        level,
        f"{type(error).__name__}: {error}",
    )
    assert ("exception" in line, "_aws" in line) == (level == "ERROR", False)


@pytest.mark.parametrize(("metrics", "lines"), [(False, 0), (True, 1)])
def test_the_level_of_the_log_hides_growth_unless_it_is_counted(
    metrics: bool,  # noqa: FBT001
    lines: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = Report(GrowthEvent.ASKED, "user.v1.User", None, None, "16 to 32", 32)

    Observer("dev", metrics=metrics, level=ERROR).grew(report)

    assert len(_lines(capsys)) == lines


def test_a_growth_event_has_a_line_with_a_metric_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = Report(GrowthEvent.WOULD_ASK, "user.v1.User", "user.v1.User:abc", "GSI1", "dry run: 16 to 32", 32)

    Observer("dev", metrics=True).grew(report)

    [record] = _lines(capsys)
    wanted = {"outcome": "would_ask", "partition": "user.v1.User:abc", "target": 32, "reason": "dry run: 16 to 32"}
    wanted |= {"entity": "user.v1.User", "index": "GSI1"}
    assert {**wanted, "level": "WARNING", "message": "growth"}.items() <= record.items()
    [directive] = record["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["environment"]]
    assert directive["Metrics"] == [{"Name": "GrowthWouldAsk", "Unit": "Count"}]
    assert (record["environment"], record["GrowthWouldAsk"]) == ("dev", [1.0])
