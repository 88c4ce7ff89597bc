"""Before the stacks of an environment are removed, the executions of its state machine are stopped."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from moto import mock_aws

from dynashard_tools.failure import CommandError
from dynashard_tools.reshard.halting import ROUNDS, halt, machine_name

pytestmark = pytest.mark.unit

WAITING = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}}
MAKEFILE = Path(__file__).resolve().parents[3] / "Makefile"


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        yield botocore.session.get_session().create_client(
            "stepfunctions",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 -- moto's
        )


def machine(client: Any, environment: str, *executions: str) -> str:
    """Create the state machine of an environment with running executions, and return its ARN."""
    role = "arn:aws:iam::123456789012:role/machine"
    made = client.create_state_machine(name=machine_name(environment), definition=json.dumps(WAITING), roleArn=role)
    for name in executions:
        client.start_execution(stateMachineArn=made["stateMachineArn"], name=name)
    return str(made["stateMachineArn"])


def running(client: Any, arn: str) -> list[str]:
    found = client.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"]
    return sorted(each["name"] for each in found)


def test_all_running_executions_of_the_environment_and_no_others_are_stopped(client: Any) -> None:
    dev, prod = machine(client, "dev", "a", "b"), machine(client, "prod", "c")

    stopped = halt(client, "dev", lambda _: None)

    assert sorted(stopped) == ["a", "b"]
    assert (running(client, dev), running(client, prod)) == ([], ["c"])


def test_one_that_starts_meanwhile_is_stopped_too(client: Any) -> None:
    dev = machine(client, "dev", "a")
    late = iter(["b"])

    def start(_seconds: float) -> None:
        for name in late:
            client.start_execution(stateMachineArn=dev, name=name)

    assert halt(client, "dev", start) == ["a", "b"]
    assert running(client, dev) == []


def test_an_environment_without_a_machine_has_nothing_to_stop(client: Any) -> None:
    assert halt(client, "dev", lambda _: None) == []


def test_executions_that_start_again_and_again_are_reported(client: Any) -> None:
    dev = machine(client, "dev", "a0")
    names = iter(f"a{number}" for number in range(1, ROUNDS + 1))

    with pytest.raises(CommandError, match="dynashard-dev-reshard still run"):
        halt(client, "dev", lambda _: client.start_execution(stateMachineArn=dev, name=next(names)))


def test_a_refusal_of_aws_is_one_line(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_request: Any) -> None:
        raise client.exceptions.InvalidArn({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListStateMachines")

    monkeypatch.setattr(client, "list_state_machines", refused)

    with pytest.raises(CommandError, match="executions of dev cannot be stopped"):
        halt(client, "dev", lambda _: None)


def test_make_destroy_stops_the_executions_before_it_removes_the_stacks() -> None:
    _, _, recipe = MAKEFILE.read_text().partition("\ndestroy:")
    commands = [line.strip() for line in recipe.splitlines()[1:3]]

    assert commands == [
        "$(BIN)/dynashard reshard halt --env $(ENV)",
        "$(CDK) destroy -c env=$(ENV) --all $(CDK_ARGS)",
    ]
