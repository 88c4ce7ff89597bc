"""The metrics of functions, and the events of the growth policy."""

import json
import logging
from typing import Any

import pytest

from dynashard.growth.terms import GrowthEvent, Report
from dynashard_serving import metric_names
from dynashard_serving.growth_log import GrowthLog, growth_metric
from dynashard_serving.metrics import MOST_VALUES, Figure, metrics_line

pytestmark = pytest.mark.unit

LOGGER = logging.getLogger("test-of-growth")


def metrics_of(line: str) -> dict[str, tuple[str, Any]]:
    """Return units and values by name, as CloudWatch reads a line."""
    line_of_metrics = json.loads(line)
    (directive,) = line_of_metrics["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Dynashard", [["environment"]])
    assert line_of_metrics["environment"] == "dev"
    return {each["Name"]: (each["Unit"], line_of_metrics[each["Name"]]) for each in directive["Metrics"]}


def test_a_line_has_each_figure_with_its_unit_and_the_time_in_milliseconds() -> None:
    line = metrics_line("dev", [Figure("Done", 3), Figure("Lag", [0.5, 0.25], "Seconds")], 1_800_000_000.25)

    assert metrics_of(line) == {"Done": ("Count", 3), "Lag": ("Seconds", [0.25, 0.5])}
    assert json.loads(line)["_aws"]["Timestamp"] == 1_800_000_000_250


def test_a_line_with_too_many_values_keeps_the_highest() -> None:
    line = metrics_line("dev", [Figure("Lag", [float(n) for n in range(MOST_VALUES + 5)], "Seconds")], 0)

    _, values = metrics_of(line)["Lag"]
    assert (len(values), values[0], values[-1]) == (100, 5.0, 104.0)


def test_growth_events_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    lines: list[str] = []
    report = Report(GrowthEvent.ASKED, "user.v1.User", "acme", None, "8 to 16", 16)

    GrowthLog(LOGGER, "dev", write=lines.append, clock=lambda: 1.0).grew(report)

    (logged,) = [json.loads(record.message) for record in caplog.records]
    assert (
        logged.items() >= {"event": "growth", "outcome": "asked", "entity": "user.v1.User", "reason": "8 to 16"}.items()
    )
    (line,) = lines
    assert metrics_of(line) == {"GrowthAsked": ("Count", 1)}


def test_each_event_of_the_growth_policy_has_a_metric_with_a_name_of_its_own() -> None:
    named = {value for name, value in vars(metric_names).items() if name.startswith("GROWTH_")} - {"Growth"}

    assert {growth_metric(Report(event, "", None, None, "")) for event in GrowthEvent} == named


def test_a_policy_that_fails_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    GrowthLog(LOGGER, "dev").growth_failed(RuntimeError("why"))

    (record,) = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "why"
