"""The monitoring stack: alarms, their topic, the dashboard and the saved queries."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynashard import schema
from stacks.alarms import FIRST_COMMANDS
from stacks.saved_queries import QUERIES
from tests.infra.conftest import Synthesised
from tests.infra.emitted import DYNASHARD, emitted
from tests.infra.templates import PRIME_TIME, Templates, alarms_in, context, of_type, short, synthesise

pytestmark = pytest.mark.infra

AWS_METRICS = {
    "AWS/DynamoDB": {
        f"{way}{each}"
        for way in ("Read", "Write")
        for each in (
            "KeyRangeThroughputThrottleEvents",
            "MaxOnDemandThroughputThrottleEvents",
            "ProvisionedThroughputThrottleEvents",
            "AccountLimitThrottleEvents",
        )
    }
    | {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ProvisionedWriteCapacityUnits"},
    "AWS/ApiGateway": {"Count", "4xx", "5xx", "Latency"},
    "AWS/Lambda": {"Errors", "Throttles", "IteratorAge"},
    "AWS/SQS": {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
    "AWS/States": {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"},
    "AWS/Scheduler": {"InvocationDroppedCount"},
}
"""Metrics that AWS writes, from its developer guides: DynamoDB "Metrics and dimensions" and "CloudWatch throttling
metrics", API Gateway "Monitor WebSocket and HTTP APIs", Lambda "Types of metrics", SQS "Available CloudWatch metrics",
Step Functions "Monitoring metrics", EventBridge Scheduler "Monitoring with CloudWatch"."""

Used = tuple[str, str, frozenset[str]]
"""Namespace, name and names of the dimensions of a metric."""


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    given = context("dev", table=PRIME_TIME, monitoring={"addresses": ["ops@example.com", "https://example.com/alarm"]})
    return Templates(synthesise(given, tmp_path_factory.mktemp("monitoring")), "dev")


def all_alarms(templates: Templates) -> dict[str, dict[str, Any]]:
    prewarm = alarms_in(templates["Prewarm"]) if any("Prewarm" in path.name for path in templates.files) else {}
    return alarms_in(templates["Monitoring"]) | prewarm


def in_alarm(alarm: dict[str, Any]) -> Iterator[Used]:
    metrics = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each] or [alarm]
    for metric in metrics:
        dimensions = frozenset(each["Name"] for each in metric.get("Dimensions", []))
        yield metric["Namespace"], metric["MetricName"], dimensions


def widgets(templates: Templates) -> list[dict[str, Any]]:
    """The dashboard's widgets, with the names of references instead of their values."""
    (dashboard,) = of_type(templates["Monitoring"], "AWS::CloudWatch::Dashboard").values()
    found: list[dict[str, Any]] = json.loads(short(dashboard["Properties"]["DashboardBody"]))["widgets"]
    return found


def in_widget(widget: dict[str, Any]) -> Iterator[Used]:
    for each in widget["properties"].get("metrics", []):
        if isinstance(each[0], str):
            words = [word for word in each[2:] if isinstance(word, str)]
            yield each[0], each[1], frozenset(words[::2])


def used(templates: Templates) -> set[Used]:
    alarmed = {metric for alarm in all_alarms(templates).values() for metric in in_alarm(alarm)}
    return alarmed | {metric for widget in widgets(templates) for metric in in_widget(widget)}


@pytest.mark.parametrize("which", ["dev", "prod", "scheduled"])
def test_every_metric_is_written_by_aws_or_by_our_functions(request: pytest.FixtureRequest, which: str) -> None:
    seen = used(request.getfixturevalue(which))

    ours = {(name, dimensions) for namespace, name, dimensions in seen if namespace == DYNASHARD}
    theirs = {(namespace, name) for namespace, name, _ in seen if namespace != DYNASHARD}

    assert ours <= emitted()
    assert theirs <= {(namespace, name) for namespace, names in AWS_METRICS.items() for name in names}
    assert len(ours) > 20


def test_an_alarm_watches_each_index_and_the_table_for_hot_keys_and_ceilings(dev: Templates) -> None:
    found = {
        (name, *(each["Value"] for each in alarm["Dimensions"] if "Index" in each["Name"])): alarm["MetricName"]
        for name, alarm in alarms_in(dev["Monitoring"]).items()
        if name.startswith(("throttled-key", "table-ceiling", "account-limit"))
    }

    wanted = {
        (f"{page}-{slot.lower()}-{way.lower()}s", *([] if slot == "Table" else [slot])): f"{way}{cause}ThrottleEvents"
        for page, cause in (("throttled-key", "KeyRangeThroughput"), ("table-ceiling", "MaxOnDemandThroughput"))
        for slot in ("Table", *schema.INDEX_SLOTS)
        for way in ("Read", "Write")
    }
    limits = {(f"account-limit-{way.lower()}s",): f"{way}AccountLimitThrottleEvents" for way in ("Read", "Write")}
    assert found == wanted | limits


def test_a_provisioned_table_has_alarms_for_its_capacity_and_for_missed_steps(scheduled: Templates) -> None:
    alarms = alarms_in(scheduled["Monitoring"])

    ceilings = {alarm["MetricName"] for name, alarm in alarms.items() if name.startswith("table-ceiling")}
    assert ceilings == {"ReadProvisionedThroughputThrottleEvents", "WriteProvisionedThroughputThrottleEvents"}
    assert alarms["capacity-step-missed"]["MetricName"] == "InvocationDroppedCount"


def test_bursts_that_retries_solve_and_missing_data_ring_no_alarm(dev: Templates) -> None:
    for name, alarm in all_alarms(dev).items():
        assert alarm["TreatMissingData"] == "notBreaching"
        if name.startswith("throttled-key"):
            assert (alarm["Period"], alarm["EvaluationPeriods"]) == (60, 5)
        # Otherwise an environment with little traffic would never ring for a percentile.
        assert "EvaluateLowSampleCountPercentile" not in alarm


@pytest.mark.parametrize("which", ["dev", "prod", "scheduled"])
def test_every_alarm_notifies_the_topic_and_names_its_command_and_page(
    request: pytest.FixtureRequest, which: str
) -> None:
    templates = request.getfixturevalue(which)

    for name, alarm in all_alarms(templates).items():
        (page,) = re.findall(r"docs/runbooks/([a-z-]+)\.md", alarm["AlarmDescription"])
        command = FIRST_COMMANDS[page].format(env=templates.env)
        assert name == page or name.startswith(f"{page}-")
        assert (f"Run `{command}`." in alarm["AlarmDescription"]) == ("$" not in command)
        assert [short(each) for each in alarm["AlarmActions"]] == [short(each) for each in alarm["OKActions"]]
        assert "Alarms" in short(alarm["AlarmActions"][0])


def test_every_queue_of_dead_letters_and_every_function_that_nobody_waits_for_has_an_alarm(dev: Templates) -> None:
    watched = {(alarm.get("MetricName"), short(each["Value"])) for alarm in all_alarms(dev).values()
               for each in alarm.get("Dimensions", [])}  # fmt: skip
    queues = {name for metric, name in watched if metric == "ApproximateNumberOfMessagesVisible"}
    functions = {name for metric, name in watched if metric == "Errors"}

    for dead in ("IntakeDeadLetters", "OperationsDeadLetters", "Dead", "Lost", "Missed"):
        assert any(re.match(rf"<ExportsOutputFnGetAtt{dead}[0-9A-F]{{8}}QueueName", name) for name in queues), dead
    for function in ("Api", "Commands", "Worker", "Follow", "Watch"):
        assert any(name.startswith(f"<ExportsOutputRef{function}Function") for name in functions), function


def test_the_topic_takes_messages_of_cloudwatch_alone_and_notifies_the_addresses(
    dev: Templates, scheduled: Templates
) -> None:
    (policy,) = of_type(dev["Monitoring"], "AWS::SNS::TopicPolicy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    subscribed = [each["Properties"] for each in of_type(scheduled["Monitoring"], "AWS::SNS::Subscription").values()]

    assert [each["Principal"] for each in statements if each["Effect"] == "Allow"] == [
        {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert of_type(dev["Monitoring"], "AWS::SNS::Subscription") == {}
    assert {(each["Protocol"], each["Endpoint"]) for each in subscribed} == {
        ("email", "ops@example.com"),
        ("https", "https://example.com/alarm"),
    }


def test_the_dashboard_shows_everything_that_an_operator_needs(dev: Templates) -> None:
    titles = [widget["properties"].get("title") for widget in widgets(dev)]

    assert titles[1:] == [
        "Latency (ms)",
        "Requests and errors",
        "5xx, unknown outcomes, cursor errors, shed",
        "Queries of a page",
        "Read units of a returned item",
        "Units of API requests",
        "Time in the function (ms)",
        "Read units a second",
        "Write units a second",
        "Throttles of the table by reason",
        "Reads throttled by a hot key range",
        "Writes throttled by a hot key range",
        "Age of the oldest message (s)",
        "Dead letters",
        "Lag (s)",
        "Accepted writes and changes",
        "Changes of shard counts",
        "Progress of changes",
        "Growth events",
    ]


def test_every_query_is_saved_with_existing_logs(dev: Templates) -> None:
    saved = [each["Properties"] for each in of_type(dev["Monitoring"], "AWS::Logs::QueryDefinition").values()]

    assert {each["Name"] for each in saved} == {f"dynashard-dev/{name}" for name in QUERIES}
    for each in saved:
        assert all("Log" in short(group) for group in each["LogGroupNames"])


def test_the_local_environment_has_no_monitoring(synthesised: Synthesised) -> None:
    assert not [path for path in synthesised("local", None).files if "Monitoring" in path.name]


def test_alarms_can_link_pages_that_are_published(tmp_path: Path) -> None:
    given = context("dev", monitoring={"runbooks": "https://wiki.example.com/runbooks"})

    templates = Templates(synthesise(given, tmp_path), "dev")

    alarm = alarms_in(templates["Monitoring"])["latency"]
    assert alarm["AlarmDescription"].endswith(" https://wiki.example.com/runbooks/latency.md")
