"""The metrics of functions, and the events of the growth policy."""

import json
from io import StringIO
from typing import Any

import pytest
from aws_lambda_powertools.metrics import MetricUnit

from dynashard.growth.terms import GrowthEvent, Report
from dynashard_serving.settings import TableSettings
from dynashard_serving.telemetry import metric_names
from dynashard_serving.telemetry.growth import growth_metric
from dynashard_serving.telemetry.powertools import GrowthLog, open_logger, open_metrics
from dynashard_serving.writer.metrics import write_metrics
from dynashard_serving.writer.outcomes import Tally

pytestmark = pytest.mark.unit

STAGE = TableSettings(table="t", topology_table="u", environment="prod", environment_name="stage")


def metrics_of(line: str, environment: str = "dev") -> dict[str, tuple[str, Any]]:
    """Return units and values by name, as CloudWatch reads a line."""
    line_of_metrics = json.loads(line)
    (directive,) = line_of_metrics["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Dynashard", [["environment"]])
    assert line_of_metrics["environment"] == environment
    return {each["Name"]: (each["Unit"], line_of_metrics[each["Name"]]) for each in directive["Metrics"]}


def test_metrics_have_one_dimension_whatever_the_environment_of_the_process_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "somebody")
    metrics = open_metrics("dev")

    metrics.add_metric("Lag", MetricUnit.Seconds, 0.5)
    metrics.add_metric("Lag", MetricUnit.Seconds, 0.25)
    metrics.flush_metrics()

    assert metrics_of(capsys.readouterr().out) == {"Lag": ("Seconds", [0.5, 0.25])}


def test_metrics_of_another_batch_start_empty(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = open_metrics("dev"), open_metrics("dev")
    first.add_metric("Done", MetricUnit.Count, 1)

    second.add_metric("Left", MetricUnit.Count, 1)
    second.flush_metrics()

    assert metrics_of(capsys.readouterr().out) == {"Left": ("Count", [1])}


@pytest.mark.parametrize("lags", [1, 99, 100, 101, 250])
def test_every_lag_of_a_large_batch_is_counted_once(lags: int, capsys: pytest.CaptureFixture[str]) -> None:
    write_metrics("dev", Tally(stored=lags, lags=[float(number) for number in range(lags)]))

    lines = [metrics_of(line) for line in capsys.readouterr().out.splitlines()]
    assert [lag for line in lines for lag in line.get("WriterLagSeconds", ("", []))[1]] == list(range(lags))
    assert [line["WriterStored"][1] for line in lines if "WriterStored" in line] == [[lags]]


def test_growth_events_are_logged_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    log = StringIO()
    report = Report(GrowthEvent.ASKED, "user.v1.User", "acme", None, "8 to 16", 16)

    GrowthLog(open_logger("test-of-growth", log), STAGE).grew(report)

    wanted = {"message": "growth", "outcome": "asked", "entity": "user.v1.User", "reason": "8 to 16"}
    assert wanted.items() <= json.loads(log.getvalue()).items()
    assert metrics_of(capsys.readouterr().out, "stage") == {"GrowthAsked": ("Count", [1])}


def test_each_event_of_the_growth_policy_has_a_metric_with_a_name_of_its_own() -> None:
    named = {value for name, value in vars(metric_names).items() if name.startswith("GROWTH_")}

    assert {growth_metric(Report(event, "", None, None, "")) for event in GrowthEvent} == named


def test_a_policy_that_fails_is_logged_with_its_error() -> None:
    log = StringIO()

    GrowthLog(open_logger("test-of-failures", log), STAGE).growth_failed(RuntimeError("why"))

    line = json.loads(log.getvalue())
    assert (line["message"], line["error"]) == ("growth failed", "RuntimeError: why")
    assert "RuntimeError: why" in line["exception"]
