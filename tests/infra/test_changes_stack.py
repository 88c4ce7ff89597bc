"""The changes stack: permissions, delivery of records, and retries."""

from typing import Any

import pytest

from dynashard_serving.changes.settings import Settings
from tests.infra.templates import EVENT_BUS, Templates, of_type, short, statements

pytestmark = pytest.mark.infra

TABLE = "<ExportsOutputFnGetAttTableArn48754775>"


def properties_of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    (resource,) = of_type(template, kind).values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_the_function_may_follow_the_stream_write_items_and_ask_for_shards_and_nothing_else(dev: Templates) -> None:
    allowed = statements(dev["Changes"], "FollowRole")
    (stream,) = [name for name in allowed if "TableStreamArn" in name]
    (topology,) = [name for name in allowed if "Topology" in name]
    (queue,) = [name for name in allowed if name.startswith("<Dead")]
    (log,) = [name for name in allowed if name.startswith("<FollowLog")]
    (bus,) = [name for name in allowed if name.startswith("<Bus")]

    assert allowed.pop(bus) == ["events:PutEvents"]
    assert allowed.pop(stream) == [
        f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
    ]
    assert allowed.pop(TABLE) == [
        f"dynamodb:{action}"
        for action in (
            "BatchGetItem",
            "ConditionCheckItem",
            "DeleteItem",
            "DescribeTable",
            "GetItem",
            "PutItem",
            "Query",
            "UpdateItem",
        )
    ]
    assert allowed.pop(topology) == ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem"]
    assert set(allowed.pop(queue)) == {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"}
    assert allowed.pop(log) == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert allowed == {"*": ["cloudwatch:GetMetricData", "xray:PutTelemetryRecords", "xray:PutTraceSegments"]}


def test_failed_changes_are_kept_for_two_weeks_encrypted_and_only_over_tls(dev: Templates) -> None:
    queue = properties_of(dev["Changes"], "AWS::SQS::Queue")
    policy = properties_of(dev["Changes"], "AWS::SQS::QueuePolicy")["PolicyDocument"]

    (statement,) = policy["Statement"]
    assert queue["SqsManagedSseEnabled"] is True
    assert queue["MessageRetentionPeriod"] == 14 * 86_400
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_parallelization_and_memory_are_settings(adjusted: Templates) -> None:
    assert properties_of(adjusted["Changes"], "AWS::Lambda::EventSourceMapping")["ParallelizationFactor"] == 10
    assert properties_of(adjusted["Changes"], "AWS::Lambda::Function")["MemorySize"] == 2048


def test_a_change_is_retried_for_long_and_never_just_dropped(dev: Templates) -> None:
    template = dev["Changes"]
    properties = properties_of(template, "AWS::Lambda::EventSourceMapping")
    (mapping,) = of_type(template, "AWS::Lambda::EventSourceMapping").values()

    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert properties["BisectBatchOnFunctionError"] is True
    assert properties["StartingPosition"] == "TRIM_HORIZON"
    # The stream forgets after a day. Before that, the dead letter of a batch still leads to its records.
    assert 3600 <= properties["MaximumRecordAgeInSeconds"] < 86_400
    assert short(properties["DestinationConfig"]["OnFailure"]["Destination"]).startswith("<Dead")
    assert "FilterCriteria" not in properties
    assert any(name.startswith("FollowRoleDefaultPolicy") for name in mapping["DependsOn"])


def test_the_function_ends_before_a_change_of_counts_continues_without_it(dev: Templates) -> None:
    (work,) = [
        each["Properties"]["Environment"]["Variables"]
        for name, each in of_type(dev["Reshard"], "AWS::Lambda::Function").items()
        if name.startswith("Work")
    ]
    function = properties_of(dev["Changes"], "AWS::Lambda::Function")

    assert function["Timeout"] <= int(work["TOPOLOGY_OPERATION_SECONDS"])


def test_the_function_gets_every_variable_it_needs(dev: Templates) -> None:
    function = properties_of(dev["Changes"], "AWS::Lambda::Function")

    settings = Settings.from_env(function["Environment"]["Variables"])

    assert settings.dead_letter_queue is not None
    assert settings.environment == "dev"
    assert settings.growth_mode == "on"


def test_growth_and_the_transport_are_settings(adjusted: Templates) -> None:
    function = properties_of(adjusted["Changes"], "AWS::Lambda::Function")
    settings = Settings.from_env(function["Environment"]["Variables"])

    assert (settings.growth_mode, settings.growth_cooldown_seconds, settings.growth_quiet_seconds) == (
        "dry_run",
        60,
        600,
    )
    assert settings.transport == "direct"


def test_others_find_the_bus_by_its_name_and_by_outputs(dev: Templates) -> None:
    (bus,) = of_type(dev["Changes"], "AWS::Events::EventBus").values()
    outputs = dev["Changes"]["Outputs"]

    assert bus["Properties"]["Name"] == "Dynashard-dev"
    assert short(outputs["EventBus"]["Value"]).startswith("<Bus")
    assert outputs["EventSource"]["Value"] == "dynashard"


def test_a_bus_that_exists_and_the_source_are_settings(adjusted: Templates) -> None:
    template = adjusted["Changes"]

    settings = Settings.from_env(properties_of(template, "AWS::Lambda::Function")["Environment"]["Variables"])

    assert (settings.event_bus, settings.event_source) == (EVENT_BUS, "oncall.backend")
    assert statements(template, "FollowRole")[EVENT_BUS] == ["events:PutEvents"]
    assert of_type(template, "AWS::Events::EventBus") == {}
