"""docs/monitoring.md lists every alarm, metric, query and setting, and the right number of alarms."""

import re

import pytest

from dynashard_serving import metric_names
from stacks.alarms import FIRST_COMMANDS
from stacks.saved_queries import QUERIES
from stacks.sections import MonitoringSettings
from tests.infra.templates import Templates, alarms_in
from tests.markdown import ROOT, prose

pytestmark = pytest.mark.infra

PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
QUOTED = {quoted for _, line in prose(PAGE) for quoted in re.findall(r"`([^`]+)`", line)}


def test_every_alarm_is_listed_with_its_page() -> None:
    assert [page for page in FIRST_COMMANDS if f"(runbooks/{page}.md)" not in PAGE] == []


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
