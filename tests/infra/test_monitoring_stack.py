"""The monitoring stack: alarms, their topic, the dashboard and the saved queries."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynashard import schema
from dynashard_cdk.saved_queries import QUERIES
from dynashard_serving.telemetry.metric_names import UNAUTHORIZED
from tests.infra.conftest import Synthesised
from tests.infra.emitted import DYNASHARD, emitted
from tests.infra.templates import Templates, access_log, alarms_in, context, first_commands, of_type, short, synthesise

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
    | {"ReadThrottleEvents", "WriteThrottleEvents"}
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


def counted_in_logs(templates: Templates) -> set[Used]:
    """The metrics that CloudWatch writes from the gateway's log."""
    filters = [each["Properties"] for each in of_type(templates["Monitoring"], "AWS::Logs::MetricFilter").values()]
    assert [each["FilterPattern"] for each in filters] == ['{ $.status = "401" }']
    assert access_log()["status"] == "$context.status"
    written = [metric for each in filters for metric in each["MetricTransformations"]]
    return {(each["MetricNamespace"], each["MetricName"], frozenset()) for each in written}


def used(templates: Templates) -> set[Used]:
    alarmed = {metric for alarm in all_alarms(templates).values() for metric in in_alarm(alarm)}
    return alarmed | {metric for widget in widgets(templates) for metric in in_widget(widget)}


@pytest.mark.parametrize("which", ["dev", "prod", "watched"])
def test_every_metric_is_written_by_aws_or_by_our_functions(request: pytest.FixtureRequest, which: str) -> None:
    templates = request.getfixturevalue(which)
    seen = used(templates)

    counted = counted_in_logs(templates)
    ours = {(name, dimensions) for namespace, name, dimensions in seen if namespace == DYNASHARD}
    theirs = {(namespace, name) for namespace, name, _ in seen - counted if namespace != DYNASHARD}

    assert counted == {(f"{DYNASHARD}/{templates.env}", UNAUTHORIZED, frozenset())} <= seen
    assert ours <= emitted()
    assert theirs <= {(namespace, name) for namespace, names in AWS_METRICS.items() for name in names}
    assert len(ours) > 20


def throttles(templates: Templates) -> dict[tuple[str, ...], str]:
    """The metrics of the alarms on throttles of tables, by the alarm and the table or index."""
    found: dict[tuple[str, ...], str] = {}
    for name, alarm in alarms_in(templates["Monitoring"]).items():
        if name.startswith(("throttled-key", "table-ceiling", "account-limit", "small-table-throttled")):
            expression, events = alarm["Metrics"]
            assert expression["Expression"] == "FILL(events, 0)"
            assert (events["Id"], events["MetricStat"]["Period"], events["MetricStat"]["Stat"]) == ("events", 60, "Sum")
            # Two of seven minutes may have no data yet.
            assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (5, 7)
            dimensions = {each["Name"]: each["Value"] for each in events["MetricStat"]["Metric"]["Dimensions"]}
            slot = dimensions.get("GlobalSecondaryIndexName")
            table = re.findall("Ref(Table|Topology|Idempotency)[0-9A-F]{8}", short(dimensions["TableName"]))
            found[name, slot or table[0]] = events["MetricStat"]["Metric"]["MetricName"]
    return found


def test_an_alarm_watches_each_index_and_table_for_hot_keys_ceilings_and_the_accounts_limit(dev: Templates) -> None:
    causes = {
        "throttled-key": "KeyRangeThroughput",
        "table-ceiling": "MaxOnDemandThroughput",
        "account-limit": "AccountLimit",
    }
    wanted = {
        (f"{page}-{slot.lower()}-{way.lower()}s", slot): f"{way}{cause}ThrottleEvents"
        for page, cause in causes.items()
        for slot in ("Table", *schema.INDEX_SLOTS)
        for way in ("Read", "Write")
    }
    small = {
        (f"small-table-throttled-{table.lower()}-{way.lower()}s", table): f"{way}ThrottleEvents"
        for table in ("Idempotency", "Topology")
        for way in ("Read", "Write")
    }
    assert throttles(dev) == wanted | small


def test_a_provisioned_table_has_alarms_for_its_capacity_and_for_missed_steps(watched: Templates) -> None:
    ceilings = {metric for (name, _), metric in throttles(watched).items() if name.startswith("table-ceiling")}
    steps = alarms_in(watched["Monitoring"])["capacity-step-missed"]

    assert ceilings == {"ReadProvisionedThroughputThrottleEvents", "WriteProvisionedThroughputThrottleEvents"}
    assert steps["MetricName"] == "InvocationDroppedCount"


def test_every_alarm_on_a_percentile_says_what_few_samples_mean(dev: Templates) -> None:
    few = {
        name: alarm.get("EvaluateLowSampleCountPercentile")
        for name, alarm in all_alarms(dev).items()
        if "ExtendedStatistic" in alarm or "EvaluateLowSampleCountPercentile" in alarm
    }

    # One late write is late, but one slow request is not the slowest hundredth.
    assert few == {
        "latency": "ignore",
        "latency-median": "evaluate",
        "queue-age-stored": "evaluate",
        "rollup-lag": "evaluate",
    }


@pytest.mark.parametrize("which", ["dev", "prod", "watched"])
def test_every_alarm_notifies_the_topic_and_names_its_command_and_page(
    request: pytest.FixtureRequest, which: str
) -> None:
    templates = request.getfixturevalue(which)

    for name, alarm in all_alarms(templates).items():
        (page,) = re.findall(r"docs/runbooks/([a-z-]+)\.md", alarm["AlarmDescription"])
        command = first_commands()[page].format(env=templates.env)
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


def test_every_function_has_an_alarm_for_refused_runs(dev: Templates) -> None:
    # CloudFormation waits for those of a pre-warm, and a run that fails has an alarm.
    files = [path for path in dev.files if "Prewarm" not in path.name]
    functions = [name for path in files for name in of_type(json.loads(path.read_text()), "AWS::Lambda::Function")]
    watched = {short(alarm["Dimensions"][0]["Value"]) for alarm in all_alarms(dev).values()
               if alarm.get("MetricName") == "Throttles"}  # fmt: skip

    assert len(functions) >= 10
    assert [name for name in functions if not any(f"Ref{name}" in each for each in watched)] == []


def test_the_topic_takes_messages_of_cloudwatch_alone_and_notifies_the_addresses(
    dev: Templates, watched: Templates
) -> None:
    (policy,) = of_type(dev["Monitoring"], "AWS::SNS::TopicPolicy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    subscribed = [each["Properties"] for each in of_type(watched["Monitoring"], "AWS::SNS::Subscription").values()]

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
        "Resizes",
        "Progress of resizes",
        "Growth events",
    ]


def test_every_query_is_saved_with_existing_logs(dev: Templates) -> None:
    saved = [each["Properties"] for each in of_type(dev["Monitoring"], "AWS::Logs::QueryDefinition").values()]

    assert {each["Name"] for each in saved} == {f"dynashard-dev/{name}" for name in QUERIES}
    for each in saved:
        assert all("Log" in short(group) for group in each["LogGroupNames"])


def test_the_local_environment_has_no_monitoring(synthesised: Synthesised) -> None:
    assert not [path for path in synthesised("local", None).files if "Monitoring" in path.name]


def test_alarms_can_link_pages_that_are_published(adjusted: Templates) -> None:
    alarm = alarms_in(adjusted["Monitoring"])["latency"]
    assert alarm["AlarmDescription"].endswith(" https://wiki.example.com/runbooks/latency.md")


def test_alarms_watch_the_metrics_of_their_environment_alone(tmp_path: Path) -> None:
    given = context("prod")
    stage = {**given, "env": "stage", "environments": {"stage": given["environments"]["prod"]}}
    templates = Templates(synthesise(stage, tmp_path), "stage")

    names = {
        each["Properties"]["Environment"]["Variables"]["ENVIRONMENT_NAME"]
        for stack in ("Api", "Changes", "Commands", "Reshard", "Writer")
        for each in of_type(templates[stack], "AWS::Lambda::Function").values()
    }
    watched = re.findall(r'"Name": "environment", "Value": "([^"]+)"', json.dumps(all_alarms(templates)))

    assert len(watched) > 20
    assert {*watched} == names == {"stage"}
