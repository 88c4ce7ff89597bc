"""A request of CloudFormation starts a run; the environment of the function names what it works on."""

import json
from typing import Any

import pytest
from moto import mock_aws

from dynashard_serving.prewarm.answer import Outcome, answer
from dynashard_serving.prewarm.handler import config_from, put, start
from tests.infra.prewarm_world import REQUEST, client
from tests.infra.templates import Templates, of_type

pytestmark = pytest.mark.infra

EVENT = {**REQUEST, "RequestId": "c0ffee", "ResourceProperties": {"Way": "native", "WriteUnits": "8000"}}


class Answers:
    """Records the answers that CloudFormation receives."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, url: str, body: bytes) -> None:
        assert url == REQUEST["ResponseURL"]
        self.bodies.append(json.loads(body))


def machine() -> str:
    definition = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
    created = client("stepfunctions").create_state_machine(
        name="prewarm", definition=json.dumps(definition), roleArn="arn:aws:iam::123456789012:role/machine"
    )
    return str(created["stateMachineArn"])


def inputs(arn: str) -> list[dict[str, Any]]:
    executions = client("stepfunctions").list_executions(stateMachineArn=arn)["executions"]
    described = [client("stepfunctions").describe_execution(executionArn=e["executionArn"]) for e in executions]
    return [json.loads(execution["input"]) for execution in described]


@pytest.mark.parametrize(("kind", "mode"), [("Create", "warm"), ("Update", "warm"), ("Delete", "restore")])
def test_a_request_starts_a_run_with_the_data_of_its_answer(kind: str, mode: str) -> None:
    with mock_aws():
        arn, answers = machine(), Answers()

        start({**EVENT, "RequestType": kind}, client=client("stepfunctions"), machine=arn, send=answers)

        (given,) = inputs(arn)
        assert given["mode"] == mode
        assert given["wanted"] == EVENT["ResourceProperties"]
        assert set(REQUEST) <= set(given["request"])
        assert answers.bodies == []


def test_a_request_delivered_twice_is_one_successful_run() -> None:
    with mock_aws():
        arn, answers = machine(), Answers()
        again = {**EVENT, "PhysicalResourceId": "known by now"}

        for event in (EVENT, again):
            start(event, client=client("stepfunctions"), machine=arn, send=answers)

        assert len(inputs(arn)) == 1
        assert answers.bodies == []


def test_a_run_that_cannot_be_started_is_reported_at_once() -> None:
    with mock_aws():
        answers = Answers()
        missing = "arn:aws:states:us-east-1:123456789012:stateMachine:missing"

        start(EVENT, client=client("stepfunctions"), machine=missing, send=answers)

        (body,) = answers.bodies
        assert body["Status"] == "FAILED"
        assert body["RequestId"] == "c0ffee"
        assert "no run could be started" in body["Reason"]


def test_an_answer_repeats_the_requested_resource() -> None:
    request = {**REQUEST, "PhysicalResourceId": "earlier"}

    body = json.loads(answer(request, Outcome(ok=True, deployed=True, reason="done", dollars=1.5)))

    assert body["PhysicalResourceId"] == "earlier"
    assert (body["StackId"], body["LogicalResourceId"]) == ("stack", "Prewarm")
    assert body["Data"] == {"Outcome": "done", "ExpectedDollars": "1.50"}


def test_an_answer_is_sent_only_over_https() -> None:
    with pytest.raises(ValueError, match="https"):
        put("http://169.254.169.254/", b"{}")


def test_the_template_sets_every_variable_the_function_reads(prod: Templates) -> None:
    functions = of_type(prod["Prewarm"], "AWS::Lambda::Function").values()
    (variables,) = [
        function["Properties"]["Environment"]["Variables"]
        for function in functions
        if function["Properties"]["Handler"] == "functions.prewarm.handler.step"
    ]

    config = config_from({name: value if isinstance(value, str) else "<given>" for name, value in variables.items()})

    assert config.table == "<given>"
    assert config.memory == "/dynashard/prod/prewarm"
    assert config.stop_loss == "dynashard-prod-stop-loss"
    assert config.stop_loss_role == "<given>"
    assert config.limits.ceiling_write_units == 100_000
    assert (config.max_read_units, config.max_write_units) == (30_000, 30_000)
