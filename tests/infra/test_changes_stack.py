"""The changes stack: what it may do, how records reach it, when it gives up, and what rings."""

from typing import Any

import pytest

from functions.changes.settings import Settings
from tests.infra.templates import Templates, of_type, short, statements

pytestmark = pytest.mark.infra

TABLE = "<ExportsOutputFnGetAttTableArn48754775>"


def properties_of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    (resource,) = of_type(template, kind).values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_the_function_may_read_the_stream_write_items_and_keep_what_it_cannot_handle(dev: Templates) -> None:
    allowed = statements(dev["Changes"], "FollowRole")
    (stream,) = [name for name in allowed if "TableStreamArn" in name]
    (topology,) = [name for name in allowed if "Topology" in name]
    (queue,) = [name for name in allowed if name.startswith("<Dead")]

    assert allowed[stream] == [
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
    ]
    assert "dynamodb:Scan" not in allowed[TABLE]
    assert "dynamodb:ConditionCheckItem" in allowed[TABLE]
    assert allowed[topology] == ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem"]
    assert set(allowed[queue]) <= {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}


def test_a_change_comes_again_for_long_and_is_never_just_dropped(dev: Templates) -> None:
    template = dev["Changes"]
    properties = properties_of(template, "AWS::Lambda::EventSourceMapping")
    (mapping,) = of_type(template, "AWS::Lambda::EventSourceMapping").values()

    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert properties["BisectBatchOnFunctionError"] is True
    assert properties["StartingPosition"] == "TRIM_HORIZON"
    # The stream forgets after a day: what is given up before that can still be told where it was.
    assert 3600 <= properties["MaximumRecordAgeInSeconds"] < 86_400
    assert short(properties["DestinationConfig"]["OnFailure"]["Destination"]).startswith("<Dead")
    assert "FilterCriteria" not in properties
    assert any(name.startswith("FollowRoleDefaultPolicy") for name in mapping["DependsOn"])


def test_it_ends_before_a_change_of_counts_goes_on_without_it(dev: Templates) -> None:
    (work,) = [
        each["Properties"]["Environment"]["Variables"]
        for name, each in of_type(dev["Reshard"], "AWS::Lambda::Function").items()
        if name.startswith("Work")
    ]
    function = properties_of(dev["Changes"], "AWS::Lambda::Function")

    assert function["Timeout"] <= int(work["TOPOLOGY_OPERATION_SECONDS"])


def test_the_function_is_told_all_that_it_needs(dev: Templates) -> None:
    function = properties_of(dev["Changes"], "AWS::Lambda::Function")

    settings = Settings.from_env(function["Environment"]["Variables"])

    assert settings.dead_letter_queue is not None
    assert settings.environment == "dev"


def test_it_rings_when_it_lags_fails_or_gives_up(dev: Templates) -> None:
    alarms = [each["Properties"] for each in of_type(dev["Changes"], "AWS::CloudWatch::Alarm").values()]

    assert {(alarm["MetricName"], alarm["Threshold"]) for alarm in alarms} == {
        ("IteratorAge", 300_000),
        ("Errors", 1),
        ("ApproximateNumberOfMessagesVisible", 1),
    }
    assert all("docs/changes.md" in alarm["AlarmDescription"] for alarm in alarms)
