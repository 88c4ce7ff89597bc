"""The local queues: visibility, dead letters, ordered groups, the protocol of SQS, and durability."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.session
import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard_local.aws_calls import serving
from dynashard_local.errors import LocalStackError
from dynashard_local.queues.running import open_queues, queue_specs
from dynashard_local.queues.server import MAX_BYTES, QueueCalls
from dynashard_local.queues.store import (
    DATABASE,
    DEDUPLICATION_SECONDS,
    Delivery,
    Depth,
    NewMessage,
    QueueSpec,
    QueueStore,
)
from dynashard_local.settings import Settings
from dynashard_local.template import Templates
from dynashard_local.workers.queue_worker import event_of, poll, work
from tests.depth import examples

pytestmark = pytest.mark.unit

HIDDEN = 30.0
WHY = {"why": {"DataType": "String", "StringValue": "y"}}
SPECS = [QueueSpec("q", HIDDEN, 3, "dead"), QueueSpec("dead", HIDDEN)]


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[QueueStore]:
    with closing(QueueStore(tmp_path / "queues", SPECS, clock)) as opened:
        yield opened


def send(store: QueueStore, *bodies: str, group: str | None = None) -> None:
    store.send("q", [NewMessage(body, {}, group) for body in bodies])


def bodies(deliveries: list[Delivery]) -> list[str]:
    return [delivery.body for delivery in deliveries]


def test_a_received_message_is_hidden_and_delivered_again_unless_it_is_deleted(store: QueueStore, clock: Clock) -> None:
    send(store, "a", "b")

    first = store.receive("q", 10)
    assert (bodies(first), bodies(store.receive("q", 10))) == (["a", "b"], [])
    store.delete([first[0].receipt])
    clock.now += HIDDEN

    (again,) = store.receive("q", 10)
    assert (again.body, again.receives, again.id) == ("b", 2, first[1].id)


def test_a_stale_receipt_deletes_nothing(store: QueueStore, clock: Clock) -> None:
    send(store, "a")
    (stale,) = store.receive("q", 1)
    clock.now += HIDDEN
    store.receive("q", 1)

    store.delete([stale.receipt])
    store.hide({stale.receipt: 0.0})

    assert store.depth("q") == Depth(0, 1, HIDDEN)


def test_a_message_received_too_often_becomes_a_dead_letter(store: QueueStore, clock: Clock) -> None:
    send(store, "a")
    for _ in range(3):
        store.receive("q", 1)
        clock.now += HIDDEN

    assert store.receive("q", 1) == []
    assert bodies(store.receive("dead", 1)) == ["a"]


def test_messages_can_be_hidden_and_released(store: QueueStore, clock: Clock) -> None:
    send(store, "a", "b")
    first, second = store.receive("q", 2)

    store.hide({first.receipt: 1.0, second.receipt: 100.0})
    clock.now += 1
    assert bodies(store.receive("q", 2)) == ["a"]
    assert store.release("q") == 2
    assert bodies(store.receive("q", 2)) == ["a", "b"]


def test_a_group_waits_for_its_first_message_and_others_do_not(store: QueueStore, clock: Clock) -> None:
    send(store, "g1", "g2", group="g")
    send(store, "h1", group="h")

    first, *_ = store.receive("q", 1)
    assert bodies(store.receive("q", 10)) == ["h1"]
    store.delete([first.receipt])
    assert bodies(store.receive("q", 10)) == ["g2"]
    clock.now += HIDDEN
    assert bodies(store.receive("q", 10)) == ["g2", "h1"]


def test_a_repeat_is_recognised_for_five_minutes(store: QueueStore, clock: Clock) -> None:
    def once() -> None:
        store.send("q", [NewMessage("a", {}, "g", "id")])

    once()
    once()
    assert store.depth("q").visible == 1
    clock.now += DEDUPLICATION_SECONDS + 1
    once()
    assert store.depth("q").visible == 2


def test_a_sent_message_survives_its_sender(tmp_path: Path, store: QueueStore, clock: Clock) -> None:
    send(store, "a")
    store.receive("q", 1)
    clock.now += HIDDEN

    with closing(QueueStore(tmp_path / "queues", SPECS, clock)) as other:
        assert bodies(other.receive("q", 1)) == ["a"]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_group_is_processed_in_order_and_nothing_is_lost_after_failures(
    tmp_path: Path, clock: Clock, data: st.DataObject
) -> None:
    name = uuid4().hex
    with closing(QueueStore(tmp_path / "groups", [QueueSpec(name, HIDDEN)], clock)) as store:
        groups = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=12))
        store.send(name, [NewMessage(str(number), {}, group) for number, group in enumerate(groups)])
        done: list[int] = []
        rounds = 0
        while len(done) < len(groups) and (rounds := rounds + 1) < 200:
            deliveries = store.receive(name, data.draw(st.integers(1, 5)))
            failed: set[str | None] = set()
            for delivery in deliveries:
                if delivery.group not in failed and data.draw(st.integers(0, 3)):
                    done.append(int(delivery.body))
                    store.delete([delivery.receipt])
                else:
                    failed.add(delivery.group)
            clock.now += data.draw(st.sampled_from([0.0, HIDDEN]))
        clock.now += HIDDEN
        while deliveries := store.receive(name, 10):
            done += [int(delivery.body) for delivery in deliveries]
            store.delete([delivery.receipt for delivery in deliveries])

    assert sorted(done) == list(range(len(groups)))
    for group in set(groups):
        mine = [number for number in done if groups[number] == group]
        assert all(before < after for before, after in pairwise(mine))


@pytest.fixture
def client(store: QueueStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return botocore's client, which finds the local queues by its environment."""
    with serving(QueueCalls(store)) as url:
        for name, value in {
            "AWS_ENDPOINT_URL_SQS": url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield botocore.session.get_session().create_client("sqs")


def test_the_sdk_sends_receives_hides_and_deletes(client: Any, store: QueueStore) -> None:
    entries = [{"Id": str(number), "MessageBody": f"ä{number}\u2028"} for number in range(10)]
    assert len(client.send_message_batch(QueueUrl="q", Entries=entries)["Successful"]) == 10
    client.send_message(
        QueueUrl="http://127.0.0.1/0/q",
        MessageBody="x",
        MessageAttributes={"why": {"DataType": "String", "StringValue": "y"}},
    )

    first = client.receive_message(QueueUrl="q", MaxNumberOfMessages=10)["Messages"]
    (last,) = client.receive_message(QueueUrl="q", MaxNumberOfMessages=10, MessageAttributeNames=["All"])["Messages"]

    assert [each["Body"] for each in first] == [entry["MessageBody"] for entry in entries]
    assert last["MessageAttributes"]["why"]["StringValue"] == "y"
    receipts = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(first)]
    client.delete_message_batch(QueueUrl="q", Entries=receipts)
    hidden = [{"Id": "0", "ReceiptHandle": last["ReceiptHandle"], "VisibilityTimeout": 0}]
    client.change_message_visibility_batch(QueueUrl="q", Entries=hidden)
    assert store.depth("q") == Depth(1, 0, 0.0)


@pytest.mark.parametrize(
    ("queue", "entries", "code"),
    [
        ("nowhere", [{"Id": "0", "MessageBody": "x"}], "QueueDoesNotExist"),
        ("q", [], "EmptyBatchRequest"),
        ("q", [{"Id": str(each), "MessageBody": "x"} for each in range(11)], "TooManyEntriesInBatchRequest"),
        ("q", [{"Id": "0", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        (
            "q",
            [{"Id": str(each), "MessageBody": "x" * (MAX_BYTES // 2 + 1)} for each in range(2)],
            "BatchRequestTooLong",
        ),
        ("q", [{"Id": "0", "MessageBody": "x" * (MAX_BYTES - 8), "MessageAttributes": WHY}], "InvalidParameterValue"),
        *(("q", [{"Id": "0", "MessageBody": wrong}], "InvalidMessageContents") for wrong in ("\ufffe", "\uffff", "\0")),
    ],
)
def test_the_sdk_is_refused_as_by_sqs(client: Any, queue: str, entries: list[dict[str, Any]], code: str) -> None:
    with pytest.raises(ClientError) as refused:
        client.send_message_batch(QueueUrl=queue, Entries=entries)

    assert code in refused.value.response["Error"]["Code"]


def test_a_worker_deletes_what_its_function_did_not_name(store: QueueStore, clock: Clock) -> None:
    send(store, "good", "bad")
    events: list[Any] = []

    def handle(event: Any, context: Any) -> Any:
        assert context.get_remaining_time_in_millis() > 0
        events.append(event)
        bad = [record["messageId"] for record in event["Records"] if record["body"] == "bad"]
        return {"batchItemFailures": [{"itemIdentifier": each} for each in bad]}

    assert poll(store, "q", handle, clock) == 2
    clock.now += HIDDEN
    assert poll(store, "q", handle, clock) == 1

    assert [record["body"] for record in events[1]["Records"]] == ["bad"]
    assert events[1]["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"


def test_an_event_has_the_format_of_lambda(store: QueueStore) -> None:
    store.send("q", [NewMessage("x", {"why": {"DataType": "String", "StringValue": "y"}}, "g")])
    deliveries = store.receive("q", 1)

    (record,) = event_of("q", deliveries)["Records"]

    assert record == {
        "messageId": deliveries[0].id,
        "receiptHandle": deliveries[0].receipt,
        "body": "x",
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1000000",
            "SenderId": "local",
            "MessageGroupId": "g",
        },
        "messageAttributes": {"why": {"stringValue": "y", "dataType": "String"}},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:q",
        "awsRegion": "us-east-1",
    }


def test_a_new_worker_gets_the_messages_of_a_killed_one_at_once_and_survives_errors(store: QueueStore) -> None:
    send(store, "a")
    store.receive("q", 1)
    seen: list[str] = []
    logged: list[str] = []
    rounds = iter([False, False, True])

    def handle(event: Any, _context: Any) -> Any:
        seen.extend(record["body"] for record in event["Records"])
        raise RuntimeError("a bug")

    work(store, ["q"], handle, stop=lambda: next(rounds), sleep=lambda _: None, log=logged.append)

    assert (seen, len(logged)) == (["a"], 1)
    assert store.depth("q").in_flight == 1


def test_the_queues_of_the_template_exist_with_their_dead_letter_queues() -> None:
    dead = {"Fn::GetAtt": ["Dead", "Arn"]}
    resources = {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {"RedrivePolicy": {"deadLetterTargetArn": dead, "maxReceiveCount": 7}},
        },
        "Dead": {"Type": "AWS::SQS::Queue"},
    }

    specs = queue_specs(Templates({"S": {"Resources": resources}}), Settings(queue_visibility_seconds=5))

    assert specs == [QueueSpec("S-Queue", 5, 7, "S-Dead"), QueueSpec("S-Dead", 5)]


def test_queues_use_the_wall_clock_so_ages_survive_a_restart(tmp_path: Path) -> None:
    with closing(QueueStore(tmp_path / "wall", SPECS, time.time)) as store:
        send(store, "a")

        assert 0 <= store.depth("q").oldest_seconds < 60


def test_a_damaged_file_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database" * 1000)

    with pytest.raises(LocalStackError, match=r"queues\.sqlite cannot be used .* move it away"):
        open_queues(tmp_path, [])
