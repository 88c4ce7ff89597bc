"""docs/monitoring.md lists every alarm, metric, query and setting, and the right number of alarms."""

import json
import re
from typing import Final

import pytest

from dynashard.transport.interface import Consumed, Meter
from dynashard_cdk.saved_queries import QUERIES
from dynashard_cdk.sections import MonitoringSettings
from dynashard_serving.api.request_log import Observed, RequestLines
from dynashard_serving.telemetry import metric_names
from tests.infra.templates import Templates, access_log, alarms_in, first_commands
from tests.markdown import ROOT, prose

pytestmark = pytest.mark.infra

PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
QUOTED = {quoted for _, line in prose(PAGE) for quoted in re.findall(r"`([^`]+)`", line)}


def test_every_alarm_is_listed_with_its_page() -> None:
    assert [page for page in first_commands() if f"(runbooks/{page}.md)" not in PAGE] == []


def test_every_metric_is_listed() -> None:
    dimensions = {"NAMESPACE", "ENVIRONMENT", "SERVICE", "API"}
    values = {name: value for name, value in vars(metric_names).items() if name.isupper() and name not in dimensions}

    listed = {f"{value}<reason>" if name == "THROTTLES_PREFIX" else value for name, value in values.items()}
    assert {name for name in listed if not name.startswith("Growth")} | {"Growth<event>"} <= QUOTED


def test_every_query_and_every_setting_is_listed() -> None:
    assert {*QUERIES} <= QUOTED
    assert {f"monitoring.{name}" for name in MonitoringSettings.model_fields} <= QUOTED


def test_the_cost_is_that_of_the_alarms_of_an_environment(dev: Templates) -> None:
    alarms = alarms_in(dev["Monitoring"]).values()

    metrics = sum(len([each for each in alarm.get("Metrics", []) if "MetricStat" in each]) or 1 for alarm in alarms)
    assert f"| {len(alarms)} alarms on {metrics} metrics, $0.10 each | ${metrics * 0.10:.2f} |" in PAGE


REQUEST: Final = "8f507cfc-xmpl-4697-b07a-ac58fc914c95"
OF_GATEWAY: Final = {
    "requestId": "JKJaXmPLvHcESHA=",
    "time": "23/Nov/2026:21:15:23 +0000",
    "ip": "203.0.113.123",
    "method": "GET",
    "route": "GET /v1/users/{id}",
    "path": "/v1/users/2ZzQ0jX9mV3kq1sH7cYb4nTfLwE",
    "status": "200",
    "bytes": "412",
    "milliseconds": "24",
    "integrationMilliseconds": "21",
    "integrationError": "-",
    "authorizerError": "-",
}
OF_LAMBDA: Final = f"""START RequestId: {REQUEST} Version: 12
END RequestId: {REQUEST}
REPORT RequestId: {REQUEST}\tDuration: 12.34 ms\tBilled Duration: 13 ms\tMemory Size: 1769 MB\tMax Memory Used: 9 MB\t\
XRAY TraceId: 1-5e34a614-10bdxmplf1fb44f07bc535a1\tSegmentId: 07f5xmpl2d1f6f85\tSampled: true
""".splitlines(keepends=True)
"""The lines of Lambda's developer guide, "Sending Lambda function logs to CloudWatch Logs"."""
EVENT_BYTES: Final = 26
"""What CloudWatch adds to each event: "Amazon CloudWatch pricing"."""


@pytest.mark.parametrize(("operation", "items", "dollars"), [("GetItem", None, 0.85), ("Query", 50, 0.95)])
def test_the_cost_of_logs_is_that_of_the_lines_of_a_request(
    operation: str, items: int | None, dollars: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5e34a614-10bdxmplf1fb44f07bc535a1;Parent=07f5xmpl2d1f6f85;Sampled=1")
    meter = Meter()
    meter.record(operation, Consumed(read_units=0.5, requests=1))
    observed = Observed(REQUEST, "GET", "/v1/users/{id}", 200, "customer-1234", 12.5, meter, items=items)
    line = RequestLines("prod", metrics=True).line(observed, 1_800_000_000.0)

    size = sum(len(each) + EVENT_BYTES for each in (line, json.dumps(OF_GATEWAY), *OF_LAMBDA))

    assert OF_GATEWAY.keys() == access_log().keys()
    # A GB is $0.50.
    assert size * 1e6 / 1e9 * 0.50 == pytest.approx(dollars, abs=0.03)
    assert "| $0.85 a million requests for single items, $0.95 for listings;" in PAGE
