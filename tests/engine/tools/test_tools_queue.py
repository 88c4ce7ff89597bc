"""`dynashard queue`: waiting messages and dead letters of the local queues."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from botocore.stub import Stubber

from dynashard_local.queues.running import open_queues, queue_specs
from dynashard_local.queues.server import QueueCalls
from dynashard_local.queues.store import DATABASE, NewMessage, QueueStore
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_tools.environments import Environment
from dynashard_tools.failure import CommandError
from dynashard_tools.queue.reach import EVENTS, Queue, reach
from dynashard_tools.queue.redriving import redrive
from tests.engine.command_line import CommandLine
from tests.engine.tools.deployed_stack import deploy

pytestmark = pytest.mark.engine


CONSUMER: Final[Mapping[str, Any]] = {
    "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": []}}},
    "Records": {"Type": "AWS::SQS::Queue"},
    "Consumer": {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Code": {"ZipFile": "pass"},
            "Handler": "index.handler",
            "Runtime": "python3.13",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        },
    },
    "Mapping": {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {"FunctionName": {"Ref": "Consumer"}, "EventSourceArn": {"Fn::GetAtt": ["Records", "Arn"]}},
    },
}
"""The resources of a stream consumer."""


@pytest.fixture
def store(command_line: CommandLine) -> QueueStore:
    """The queues that the command line finds."""
    settings = Settings.from_env({**os.environ, **command_line.environment})
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return open_queues(settings.data_dir, queue_specs(committed(), settings))


@pytest.fixture
def queues(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Queue]:
    for name, value in command_line.environment.items():
        monkeypatch.setenv(name, value)
    return reach(None).by_name


@pytest.fixture
def events(queues: Mapping[str, Queue]) -> Mapping[str, str]:
    assert queues
    return reach(None).events


def a_letter(body: Any, reason: str = "validation_failed", group: str | None = None) -> NewMessage:
    attributes = {"reason": {"DataType": "String", "StringValue": reason}}
    return NewMessage(body if isinstance(body, str) else json.dumps(body), attributes, group)


def test_status_shows_every_queue(command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]) -> None:
    store.send(queues["intake"].url, [a_letter({})] * 3)
    store.receive(queues["intake"].url, 1)
    store.send(queues["operations"].dead_letters_url, [a_letter({})])
    for url in reach(None).events.values():
        store.send(url, [a_letter({})] * 2)

    printed = json.loads(command_line.run("queue", "status", "--json").out)

    ages = {name: row.pop("oldest_dead_letter_seconds") for name, row in printed.items() if name != "stream"}
    assert printed.pop("stream").keys() == {"behind_seconds", "state"}
    assert printed["intake"].pop("oldest_seconds") >= 0
    assert printed == {
        "intake": {"waiting": 2, "in_flight": 1, "dead_letters": 0},
        "operations": {"waiting": 0, "in_flight": 0, "oldest_seconds": None, "dead_letters": 1},
        "changes": {"dead_letters": 2},
        "reshard": {"dead_letters": 2},
        "watch": {"dead_letters": 2},
    }
    assert [name for name, age in ages.items() if age is None] == ["intake"]
    assert set(EVENTS) == set(reach(None).events)


def test_status_shows_the_age_of_the_oldest_message(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]
) -> None:
    assert store.depth(queues["intake"].url).visible == 0
    settings = Settings.from_env({**os.environ, **command_line.environment})
    specs = queue_specs(committed(), settings)
    an_hour_ago = QueueStore(settings.data_dir / DATABASE, specs, lambda: time.time() - 3600)
    an_hour_ago.send(queues["intake"].url, [a_letter({})])

    shown = command_line.run("queue", "status").out

    assert "intake: 1 waiting, 0 in flight, the oldest 3,60" in shown


@pytest.mark.usefixtures("store")
def test_status_works_while_the_stack_is_stopped(command_line: CommandLine) -> None:
    stopped = replace(command_line, environment={**command_line.environment, "DYNAMODB_ENDPOINT": "http://127.0.0.1:9"})

    ended = stopped.run("queue", "status")

    assert ended.status == 0
    assert "stream: unknown, because the local stack does not run" in ended.out


def test_queues_of_a_stack_that_never_ran_are_not_created(command_line: CommandLine) -> None:
    ended = command_line.run("queue", "status")

    assert (ended.status, ended.out) == (1, "")
    assert "start it with `make run`" in ended.err


def test_redriven_messages_leave_the_dead_letters_for_their_queue(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]
) -> None:
    queue = queues["intake"]
    bodies = [{"number": number} for number in range(25)]
    store.send(queue.dead_letters_url, [a_letter(body) for body in bodies])

    printed = json.loads(command_line.run("queue", "redrive", "intake", "--json").out)

    assert printed == {"queue": "intake", "messages": 25}
    assert [json.loads(each.body) for each in store.receive(queue.url, 100)] == bodies
    assert store.depth(queue.dead_letters_url).visible == store.depth(queue.dead_letters_url).in_flight == 0


def test_messages_that_one_call_cannot_take_are_redriven_in_several(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]
) -> None:
    queue = queues["intake"]
    store.send(queue.dead_letters_url, [a_letter({"text": "x" * 400_000}) for _ in range(4)])

    printed = json.loads(command_line.run("queue", "redrive", "intake", "--json").out)

    assert printed == {"queue": "intake", "messages": 4}
    assert store.depth(queue.url).visible == 4


def test_unreadable_messages_are_redriven_unchanged(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]
) -> None:
    store.send(queues["intake"].dead_letters_url, [a_letter({"unreadable": "{"}), a_letter("no JSON"), a_letter([1])])

    command_line.run("queue", "redrive", "intake")

    assert [each.body for each in store.receive(queues["intake"].url, 10)] == ["{", "no JSON", "[1]"]


def test_redriven_operations_say_so_and_keep_their_group(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue]
) -> None:
    store.send(queues["operations"].dead_letters_url, [a_letter({"operation_id": "x"}, group="g")])

    command_line.run("queue", "redrive", "operations")

    (delivery,) = store.receive(queues["operations"].url, 10)
    assert (json.loads(delivery.body), delivery.group) == ({"operation_id": "x", "redriven": True}, "g")


def test_dead_letters_can_be_exported_to_a_file(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue], tmp_path: Path
) -> None:
    file = tmp_path / "letters.jsonl"
    store.send(queues["intake"].dead_letters_url, [a_letter({"number": number}) for number in range(12)])

    command_line.run("queue", "redrive", "intake", "--to-file", str(file))
    again = command_line.run("queue", "redrive", "intake", "--to-file", str(file))
    assert again.status == 1

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [json.loads(line["body"]) for line in lines] == [{"number": number} for number in range(12)]
    assert {line["reason"] for line in lines} == {"validation_failed"}
    assert store.depth(queues["intake"].dead_letters_url).visible == 0
    assert "name a new file" in again.err
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_message_that_the_queue_refuses_stays_a_dead_letter(store: QueueStore, queues: Mapping[str, Queue]) -> None:
    queue = queues["intake"]
    store.send(queue.dead_letters_url, [a_letter({"number": number}) for number in range(3)])

    answer = QueueCalls(store).answer

    def only_the_first(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation != "SendMessageBatch":
            return answer(operation, request)
        first, *others = request["Entries"]
        answer(operation, {**request, "Entries": [first]})
        return {"Successful": [{"Id": first["Id"]}], "Failed": [{"Id": each["Id"]} for each in others]}

    with pytest.raises(CommandError, match="1 were put back"):
        redrive(only_the_first, queue, most=3, done=lambda _: None)

    dead = store.depth(queue.dead_letters_url)
    assert (store.depth(queue.url).visible, dead.visible + dead.in_flight) == (1, 2)


def test_a_queue_that_aws_refuses_is_named_in_one_line(deployed: CommandLine) -> None:
    gone = "https://sqs.us-east-1.amazonaws.com/123456789012/gone"
    outputs = product(("Intake", "Operations"), ("Url", "DeadLettersUrl"))
    deploy("staging", {f"{name}{kind}": gone for name, kind in outputs}, "Writer")

    ended = deployed.run("queue", "redrive", "intake", "--env", "staging")

    assert (ended.status, ended.out, len(ended.err.splitlines())) == (1, "", 1)
    assert "error: the queue gone cannot be used: " in ended.err


def test_status_shows_the_queues_if_metrics_may_not_be_read(
    deployed: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = boto3.client("sqs", region_name="us-east-1").create_queue(QueueName="waiting")["QueueUrl"]
    boto3.client("sqs", region_name="us-east-1").send_message(QueueUrl=url, MessageBody="{}")
    deploy(
        "staging",
        {f"{name}{kind}": url for name, kind in product(("Intake", "Operations"), ("Url", "DeadLettersUrl"))},
        "Writer",
    )
    deploy("staging", {"Nothing": "here"}, "Changes", CONSUMER)
    client = Environment.client

    def denied(environment: Environment, service: str) -> Any:
        made = client(environment, service)
        if service == "cloudwatch":
            stub = Stubber(made)
            for _ in range(2):
                stub.add_client_error("get_metric_data", "AccessDenied", "not authorized", 403)
            stub.activate()
        return made

    monkeypatch.setattr(Environment, "client", denied)

    ended = deployed.run("queue", "status", "--env", "staging")

    assert ended.status == 0
    assert "intake: 1 waiting, 0 in flight; 1 dead letters" in ended.out
    assert "stream: unknown, because its metric cannot be read (Enabled)" in ended.out
    assert "the ages of messages are not shown: CloudWatch does not answer" in ended.err


def test_an_interrupted_redrive_says_how_many_letters_it_has_moved(
    command_line: CommandLine, store: QueueStore, queues: Mapping[str, Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.send(queues["intake"].dead_letters_url, [a_letter({"number": number}) for number in range(12)])

    answer = QueueCalls.answer

    def interrupted(calls: QueueCalls, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == "ReceiveMessage" and store.depth(queues["intake"].url).visible:
            raise KeyboardInterrupt
        return answer(calls, operation, request)

    monkeypatch.setattr(QueueCalls, "answer", interrupted)

    ended = command_line.run("queue", "redrive", "intake")

    assert (ended.status, ended.out) == (130, "")
    assert ended.err == "error: interrupted; 10 dead letters put back onto intake; the others are still dead letters\n"


CURES = {"changes": "dynashard events replay", "reshard": "the watch", "watch": "next run"}


@pytest.mark.parametrize("name", CURES)
def test_dead_letters_of_events_are_not_put_back_but_can_be_taken_out(
    command_line: CommandLine, store: QueueStore, events: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    url, file = events[name], tmp_path / "letters.jsonl"
    store.send(url, [a_letter({"number": number}) for number in range(12)])

    refused = command_line.run("queue", "redrive", name)
    before = store.depth(url).visible
    taken = command_line.run("queue", "redrive", name, "--to-file", file, "--json")

    assert (refused.status, before) == (1, 12)
    assert EVENTS[name] in refused.err
    assert CURES[name] in refused.err
    assert "--to-file" in refused.err
    assert (taken.status, taken.summary) == (0, {"queue": name, "messages": 12})
    assert len(file.read_text().splitlines()) == 12
    assert store.depth(url).visible == store.depth(url).in_flight == 0


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("more", [(), ("--to-file", "letters.jsonl")])
def test_an_unknown_queue_is_refused(
    command_line: CommandLine, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    refused = command_line.run("queue", "redrive", "outbox", *more)

    assert refused.status == 1
    assert "There are: intake, operations, changes, reshard, watch" in refused.err
    assert not list(tmp_path.glob("letters*"))
