"""The checks of `dynashard verify-aws` that only AWS can answer: their calls, on moto, and their course, on the model.

moto answers the calls, so each request is well-formed and each answer is read. What it answers is not AWS's behaviour:
a check that needs that says so, or finds a difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber

from dynashard_checks.verify_aws import load
from dynashard_checks.verify_aws.check import Check, Verdict
from dynashard_checks.verify_aws.checks import CHECKS, hot_keys, throttles
from dynashard_checks.verify_aws.context import Answer, Clock, Context
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.scratch import INDEX, PREFIX, Scratch
from dynashard_lab.simulate.model import Access, TableModel
from dynashard_lab.simulate.run import ARN, build
from dynashard_lab.simulate.scenario import Scenario

pytestmark = pytest.mark.infra

HOLDS, DIFFERS, UNCLEAR = Verdict.HOLDS, Verdict.DIFFERS, Verdict.UNCLEAR
ON_MOTO = {
    "queue-characters": HOLDS,
    "queue-sizes": HOLDS,
    "queue-groups": HOLDS,
    "scan-positions": HOLDS,
    "transaction-conflicts": UNCLEAR,
    "key-range-throttle": UNCLEAR,
    "cold-table-throttle": UNCLEAR,
    "index-key-range-throttle": UNCLEAR,
    "provisioned-throttle": UNCLEAR,
    "maximum-throttle": UNCLEAR,
    "unexplained-throttles": UNCLEAR,
    "update-table-together": DIFFERS,
    "own-maximum": DIFFERS,
    "warm-throughput": DIFFERS,
    "on-demand-switches": DIFFERS,
    "provision-100000": HOLDS,
    "embedded-metrics": DIFFERS,
}
START = 1_800_000_000.0
BY_NAME = {check.name: check for check in CHECKS}


class VirtualTime:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = START

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def time() -> VirtualTime:
    return VirtualTime()


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several workers would add their sleeps up in virtual time."""

    def alone(*arguments: Any, **options: Any) -> load.Traffic:
        return load.send(*arguments, **{**options, "workers": 1})

    monkeypatch.setattr(throttles, "send", alone)
    monkeypatch.setattr(hot_keys, "send", alone)


@pytest.fixture(autouse=True)
def one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto copies its tables for a transaction, and fails if one changes meanwhile."""
    answer, lock = BotocoreStubber.process_request, RLock()

    def alone(stubber: BotocoreStubber, request: Any) -> Any:
        with lock:
            return answer(stubber, request)

    monkeypatch.setattr(BotocoreStubber, "process_request", alone)


@pytest.fixture
def context(time: VirtualTime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    with mock_aws():
        session, clients = get_session(), dict[str, Any]()

        def client(service: str, *, retries: bool = True) -> Any:
            assert isinstance(retries, bool)
            if service not in clients:
                clients[service] = session.create_client(service, region_name="eu-west-1")
            return clients[service]

        scratch = Scratch(client, "moto", time.clock.now, time.clock.sleep)
        yield Context(client, scratch, Environment("dev", lambda _stack: {}), time.clock)
        assert scratch.remove_all() == []
        assert client("dynamodb").list_tables()["TableNames"] == []
        assert "QueueUrls" not in client("sqs").list_queues(QueueNamePrefix=PREFIX)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ON_MOTO)
def test_the_calls_of_a_check_are_answered_and_their_answers_read(
    name: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def briefly(*arguments: Any, **options: Any) -> load.Traffic:
        return load.send(*arguments, **{**options, "workers": 1, "seconds": min(options["seconds"], 5)})

    monkeypatch.setattr(throttles, "send", briefly)
    monkeypatch.setattr(throttles, "_HOT_SECONDS", 1)
    monkeypatch.setattr(throttles, "_TRIES", 1)

    outcome = BY_NAME[name].run(context)

    assert outcome.verdict is ON_MOTO[name], outcome.seen


@dataclass(frozen=True)
class ModelledDynamoDB:
    """DynamoDB whose writes the simulator's model admits or throttles, in virtual time; other calls go to moto."""

    real: Any
    model: TableModel
    time: VirtualTime
    changed: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def put_item(self, *, Item: Mapping[str, Any], **_request: Any) -> Mapping[str, Any]:  # noqa: N803 - as botocore
        accesses = [Access(Item["PK"]["S"], Item["SK"]["S"], load.ITEM_UNITS)]
        if "GSI1PK" in Item:
            accesses.append(Access(Item["GSI1PK"]["S"], Item["GSI1SK"]["S"], load.ITEM_UNITS, target=INDEX))
        throttle = self.model.admit(self.time.seconds - START, *accesses)
        if throttle is None:
            return {}
        body = self.changed(throttle.body())
        code = str(body.pop("__type")).rpartition("#")[2]
        raise ClientError({"Error": {"Code": code, "Message": body.pop("message")}, **body}, "PutItem")


def modelled(
    context: Context, time: VirtualTime, changed: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body
) -> Context:
    """Return a context whose tables have partitions: new ones, on demand, with one index."""
    document = {
        "title": "t",
        "question": "q",
        "seconds": 60,
        "indexes": {INDEX: {}},
        "demands": {"unused": {"partition": "p", "rate": 1}},
    }
    model = build(Scenario.model_validate(document))
    dynamodb = ModelledDynamoDB(context.client("dynamodb"), model, time, changed)

    def describe_table(**_request: Any) -> Mapping[str, Any]:
        return {"Table": {"TableArn": ARN}}

    def client(service: str, *, retries: bool = True) -> Any:
        if service == "dynamodb":
            return dynamodb
        return context.client(service, retries=retries)

    object.__setattr__(dynamodb, "describe_table", describe_table)
    return Context(client, context.scratch, context.environment, time.clock)


@pytest.mark.parametrize("name", ["key-range-throttle", "cold-table-throttle"])
def test_a_table_of_the_model_throttles_with_its_reason(name: str, context: Context, time: VirtualTime) -> None:
    outcome = BY_NAME[name].run(modelled(context, time))

    assert outcome.verdict is HOLDS, outcome.seen


def test_a_hot_index_whose_metric_counts_nothing_is_a_difference(context: Context, time: VirtualTime) -> None:
    outcome = BY_NAME["index-key-range-throttle"].run(modelled(context, time))

    assert outcome.verdict is DIFFERS
    assert "IndexWriteKeyRangeThroughputExceeded" in outcome.seen
    assert "the metric of the index counts nothing" in outcome.seen


def test_throttles_without_reasons_are_a_difference(context: Context, time: VirtualTime) -> None:
    def without_reasons(body: dict[str, Any]) -> dict[str, Any]:
        return {name: body[name] for name in ("__type", "message")}

    outcome = BY_NAME["key-range-throttle"].run(modelled(context, time, without_reasons))

    assert outcome.verdict is DIFFERS
    assert "had no reason" in outcome.seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("check", hot_keys.CHECKS, ids=lambda check: check.name)
def test_the_experiment_on_the_model_itself_holds(check: Check, context: Context, time: VirtualTime) -> None:
    outcome = check.run(modelled(context, time))

    assert outcome.verdict is HOLDS, outcome.seen


def test_the_experiment_on_a_table_without_partitions_differs(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_keys, "put_large", lambda *_arguments: lambda _number: Answer({}))

    outcome = BY_NAME["hot-key-1"].run(context)

    assert outcome.verdict is DIFFERS
    assert "2,000 units a second sent, 2,000 admitted, 1,000 to 1,000 predicted" in outcome.seen
