"""The deployed queues: a bad message becomes a dead letter with its reason, which the command line handles."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.deployment import PREFIX, Deployment, dynashard
from tests.e2e.systems import soon

pytestmark = pytest.mark.e2e

POISON = '{"tenant_id": "poisoned", "entity": "ping.v1.Ping", "operation": "forget"}'


def status(deployment: Deployment) -> Any:
    """Return the status of the intake queue as the command line prints it."""
    return json.loads(dynashard(deployment.aws, "queue", "status", "--env=dev", "--json"))["intake"]


def dead_letters(deployment: Deployment) -> int:
    url = deployment.outputs[f"{PREFIX}-Writer"]["IntakeDeadLettersUrl"]
    wanted = ["ApproximateNumberOfMessages"]
    answer = deployment.aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=wanted)
    return int(answer["Attributes"][wanted[0]])


def test_a_bad_message_is_kept_with_its_reason_redriven_and_exported(deployment: Deployment, tmp_path: Path) -> None:
    intake, kept = deployment.outputs[f"{PREFIX}-Writer"]["IntakeUrl"], tmp_path / "letters.jsonl"
    deployment.aws.client("sqs").send_message(QueueUrl=intake, MessageBody=POISON)
    soon(lambda: dead_letters(deployment), 1)

    put_back = dynashard(deployment.aws, "queue", "redrive", "intake", "--env=dev", "--json")
    # The cause still exists, so it is a dead letter again.
    soon(lambda: dead_letters(deployment), 1)
    before = status(deployment)
    dynashard(deployment.aws, "queue", "redrive", "intake", "--env=dev", f"--to-file={kept}")

    assert json.loads(put_back) == {"queue": "intake", "messages": 1}
    assert (before["waiting"], before["dead_letters"]) == (0, 1)
    assert dead_letters(deployment) == 0
    (letter,) = [json.loads(line) for line in kept.read_text().splitlines()]
    assert (letter["reason"], json.loads(letter["body"])) == ("unknown_operation", {"unreadable": POISON})


@pytest.mark.parametrize("stack", ["Changes", "Commands", "Writer"])
def test_the_other_functions_may_do_only_what_their_roles_allow(deployment: Deployment, stack: str) -> None:
    function = deployment.resource(stack, "AWS::Lambda::Function")
    role = deployment.aws.client("lambda").get_function_configuration(FunctionName=function)["Role"]
    acting = deployment.acting_as(role)
    data, queues = deployment.outputs[f"{PREFIX}-Data"], deployment.resources("Reshard", "AWS::SQS::Queue").values()

    attempts: list[tuple[str, str, dict[str, Any]]] = [
        ("dynamodb", "scan", {"TableName": deployment.table}),
        ("dynamodb", "delete_table", {"TableName": deployment.table}),
        ("dynamodb", "delete_item", {"TableName": data["TopologyName"], "Key": {}}),
        *(("sqs", "send_message", {"QueueUrl": queue, "MessageBody": "x"}) for queue in queues),
        ("sqs", "purge_queue", {"QueueUrl": deployment.outputs[f"{PREFIX}-Writer"]["IntakeUrl"]}),
        ("lambda", "list_functions", {}),
    ]

    for service, operation, parameters in attempts:
        with pytest.raises(ClientError, match="not authorized to perform"):
            getattr(acting(service), operation)(**parameters)
