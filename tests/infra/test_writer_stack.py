"""The writer stack: queues, permissions and the function."""

from typing import Any

import pytest

from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES
from dynashard_serving.writer.operations import MOST_RECEIVES
from dynashard_serving.writer.queues import LONGEST_PAUSE_SECONDS, pause
from dynashard_serving.writer.settings import QUEUE_URLS, Settings
from tests.infra.templates import Templates, of_type, short, statements

pytestmark = pytest.mark.infra

TABLE = "<ExportsOutputFnGetAttTableArn48754775>"


def queues(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The queues by their names in the code."""
    names = ("IntakeDeadLetters", "OperationsDeadLetters", "Intake", "Operations")
    found = of_type(template, "AWS::SQS::Queue")
    return {next(name for name in names if logical.startswith(name)): each for logical, each in found.items()}


def test_every_queue_is_encrypted_and_requires_tls(dev: Templates) -> None:
    template = dev["Writer"]
    found = queues(template)

    assert len(found) == 4
    assert all(each["Properties"]["SqsManagedSseEnabled"] for each in found.values())
    policies = of_type(template, "AWS::SQS::QueuePolicy").values()
    refused = [
        statement
        for policy in policies
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert len(refused) == 4


def test_accepted_messages_survive_deletion_of_the_stack_in_production(dev: Templates, prod: Templates) -> None:
    assert {each["DeletionPolicy"] for each in queues(prod["Writer"]).values()} == {"Retain"}
    assert {each["DeletionPolicy"] for each in queues(dev["Writer"]).values()} == {"Delete"}


def test_messages_are_hidden_long_enough_and_given_up_after_many_deliveries(dev: Templates) -> None:
    (worker,) = of_type(dev["Writer"], "AWS::Lambda::Function").values()
    for name in ("Intake", "Operations"):
        properties = queues(dev["Writer"])[name]["Properties"]

        assert properties["VisibilityTimeout"] >= 6 * worker["Properties"]["Timeout"]
        receives = properties["RedrivePolicy"]["maxReceiveCount"]
        assert short(properties["RedrivePolicy"]["deadLetterTargetArn"]).startswith(f"<{name}DeadLetters")
        # The queue must keep a message longer than all its deliveries take.
        assert sum(pause(receives, 0.999) for receives in range(1, receives)) < properties["MessageRetentionPeriod"]
        # An operation ends as failed before its queue gives it up, because a caller polls its record.
        assert receives > MOST_RECEIVES
    assert pause(50, 0.999) == LONGEST_PAUSE_SECONDS


def test_operations_keep_their_order_item_by_item(dev: Templates) -> None:
    found = queues(dev["Writer"])

    for name in ("Operations", "OperationsDeadLetters"):
        properties = found[name]["Properties"]
        assert properties["FifoQueue"] is True
        assert properties["DeduplicationScope"] == "messageGroup"
        assert properties["FifoThroughputLimit"] == "perMessageGroupId"
    assert "FifoQueue" not in found["Intake"]["Properties"]


def test_batches_are_answered_in_part_and_bounded_in_number(dev: Templates) -> None:
    mappings = [each["Properties"] for each in of_type(dev["Writer"], "AWS::Lambda::EventSourceMapping").values()]

    assert len(mappings) == 2
    assert all(each["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for each in mappings)
    assert sorted(each["ScalingConfig"]["MaximumConcurrency"] for each in mappings) == [5, 10]
    assert {each["BatchSize"] for each in mappings} == {10}


def test_the_writer_may_write_items_and_take_messages_and_nothing_else(dev: Templates) -> None:
    allowed = statements(dev["Writer"], "WorkerRole")
    (topology,) = [name for name in allowed if "Topology" in name]
    dead = [name for name in allowed if "DeadLetters" in name]
    taken = [name for name in allowed if name.startswith(("<Intake", "<Operations")) and name not in dead]

    assert allowed.pop(TABLE) == [
        "dynamodb:ConditionCheckItem",
        "dynamodb:DeleteItem",
        "dynamodb:DescribeTable",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    ]
    assert allowed.pop(topology) == ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem"]
    assert [allowed.pop(name) for name in dead] == [["sqs:SendMessage"]] * 2
    for name in taken:
        assert allowed.pop(name) == [
            f"sqs:{action}"
            for action in ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
        ]
    assert sorted(allowed.pop("*")) == [
        "cloudwatch:GetMetricData",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    ]
    assert [name.startswith("<WorkerLog") for name in allowed] == [True]


def test_the_api_may_put_messages_on_both_queues_and_knows_them(dev: Templates) -> None:
    (function,) = of_type(dev["Api"], "AWS::Lambda::Function").values()
    variables = function["Properties"]["Environment"]["Variables"]
    allowed = statements(dev["Api"], "ApiRole")
    sent = [actions for resource, actions in allowed.items() if "Intake" in resource or "Operations" in resource]

    assert set(QUEUE_URLS) <= variables.keys()
    assert sent == [["sqs:SendMessage"]] * 2


def test_the_writer_gets_every_variable_it_needs(dev: Templates) -> None:
    (worker,) = of_type(dev["Writer"], "AWS::Lambda::Function").values()
    variables = {name: short(value) for name, value in worker["Properties"]["Environment"]["Variables"].items()}

    settings = Settings.from_env(variables)

    assert settings.environment == "dev"
    assert len(settings.queues) == 2
    assert settings.queues.keys() == settings.dead_letters.keys()


def test_no_write_outlasts_the_wait_between_two_phases(dev: Templates) -> None:
    (worker,) = of_type(dev["Writer"], "AWS::Lambda::Function").values()
    (work,) = [
        each["Properties"]["Environment"]["Variables"]
        for name, each in of_type(dev["Reshard"], "AWS::Lambda::Function").items()
        if name.startswith("Work")
    ]

    assert worker["Properties"]["Timeout"] <= int(work["TOPOLOGY_OPERATION_SECONDS"])


def test_messages_may_have_the_largest_size_of_sqs() -> None:
    assert MAX_MESSAGE_BYTES == 1_048_576
