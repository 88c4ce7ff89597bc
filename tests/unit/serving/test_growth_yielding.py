"""While items move, a process that is mostly throttled sends few writes to their old shard."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import KeyRangeThrottledError, TableThrottledError, ThrottledError, ThrottleReason
from dynashard.runtime import Runtime
from dynashard.transport.deadline import evidence, within
from dynashard.transport.interface import Call, Resend, Wire
from dynashard_serving.growth.yielding import FORGOTTEN_SECONDS, MOVING_SECONDS, PAUSE_SECONDS, YieldingTransport
from tests.one_by_one import OneByOne

pytestmark = pytest.mark.unit

REASONS = (ThrottleReason("TableWriteKeyRangeThroughputExceeded", ""),)
HOT = KeyRangeThrottledError("hot", operation="TransactWriteItems", aws_code="ThrottlingException", reasons=REASONS)
NO_REASON = ThrottledError("hot", operation="TransactWriteItems", aws_code="TransactionCanceledException")
FULL = TableThrottledError("full", operation="TransactWriteItems", aws_code="ThrottlingException")


def create(old: str = "hot:0", table: str = "table") -> Wire:
    """Return the request of a create in the MOVE phase: a marker at the old shard, the item at the new one."""
    marker = {"TableName": table, "Item": {"PK": {"S": old}, "SK": {"S": "x"}, "MovedTo": {"N": "16"}}}
    item = {"TableName": table, "Item": {"PK": {"S": "hot:9"}, "SK": {"S": "x"}}}
    return {"TransactItems": [{"Put": marker}, {"Put": item}]}


def put(shard: str = "hot:0") -> Wire:
    return {"TableName": "table", "Item": {"PK": {"S": shard}, "SK": {"S": "y"}}}


@dataclass
class Shard(OneByOne):
    """A transport that throttles while it is `full`, with a clock, and the `YieldingTransport` of a process on it."""

    full: ThrottledError | None = None
    now: float = 1_000.0
    random: float = 0.5
    sent: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.process = YieldingTransport(self, "table", Runtime(lambda: self.now, random=lambda: self.random))

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        self.sent.append(Call(operation, request, resend))
        if self.full is not None:
            raise self.full
        return {"answer": len(self.sent)}

    def close(self) -> None:
        """Do nothing."""

    def sends(self, operation: str = "TransactWriteItems", request: Wire | None = None) -> bool:
        """Send a request through the process; whether it came here."""
        before = len(self.sent)
        try:
            self.process.call(operation, request or create())
        except ThrottledError as error:
            self.error = error
        return len(self.sent) > before

    def overload(self, error: ThrottledError = HOT) -> None:
        """Throttle creates until the process makes way; then throttle nothing."""
        self.full = error
        for _ in range(20):
            self.sends()
        self.full = None


@given(st.lists(st.sampled_from(["TransactWriteItems", "PutItem"])))
def test_without_throttles_every_request_is_sent(operations: list[str]) -> None:
    shard = Shard()

    assert all(shard.sends(each, create() if each == "TransactWriteItems" else put()) for each in operations)


def test_a_process_that_is_mostly_throttled_sends_one_create_in_ten_seconds() -> None:
    shard = Shard()
    shard.overload()
    sent = len(shard.sent)

    assert sent < 10
    assert not shard.sends()
    assert (type(shard.error), shard.error.reasons, shard.error.retry_after) == (KeyRangeThrottledError, REASONS, 10)
    shard.full = HOT
    for second in range(1, 101):
        shard.now = 1_000.0 + second
        shard.sends()
        shard.sends()
    assert len(shard.sent) - sent == 100 / PAUSE_SECONDS


@pytest.mark.parametrize("error", [HOT, NO_REASON])
def test_writes_that_are_executed_end_the_pauses(error: ThrottledError) -> None:
    shard = Shard()
    shard.overload(error)
    began = shard.now

    while shard.now < began + 200 and not (shard.sends() and shard.sends() and shard.sends()):
        shard.now += 0.01

    assert 30 < shard.now - began < 120


def test_a_process_of_which_few_creates_are_throttled_sends_all() -> None:
    shard = Shard()

    for number in range(200):
        shard.full = HOT if number % 5 == 0 else None
        assert shard.sends()


def test_other_writes_to_the_old_shard_make_way_while_creates_leave_markers_there() -> None:
    shard = Shard()
    shard.overload()

    assert not shard.sends("PutItem", put())
    assert not shard.sends("DeleteItem", {"TableName": "table", "Key": put()["Item"]})
    shard.now += MOVING_SECONDS + 1
    assert shard.sends("PutItem", put())


def test_a_later_change_begins_without_pauses() -> None:
    shard = Shard()
    shard.overload()
    shard.now += FORGOTTEN_SECONDS

    assert shard.sends()
    assert shard.sends()


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", put("hot:1")),
        ("PutItem", {**put(), "TableName": "other"}),
        ("GetItem", {"TableName": "table", "Key": put()["Item"]}),
        ("TransactWriteItems", create("hot:1")),
        ("TransactWriteItems", create(table="other")),
        ("TransactWriteItems", {"TransactItems": [{"ConditionCheck": {"TableName": "table"}}]}),
        ("BatchWriteItem", {"RequestItems": {"table": [{"PutRequest": put()}]}}),
    ],
)
def test_other_requests_are_sent(operation: str, request_: Wire) -> None:
    shard = Shard()
    shard.overload()

    assert shard.sends(operation, request_)


def test_requests_that_find_out_what_became_of_a_write_are_sent() -> None:
    shard = Shard()
    shard.overload()

    with within(4.0), evidence():
        assert shard.sends()
        assert shard.sends("UpdateItem", {"TableName": "table", "Key": put()["Item"]})


def test_a_limit_of_the_table_does_not_make_way_for_anyone() -> None:
    shard = Shard()
    shard.overload(FULL)

    assert len(shard.sent) == 20
    assert shard.sends()


def test_a_clock_that_is_set_back_does_not_refuse_for_long() -> None:
    shard = Shard()
    shard.overload()
    shard.now -= 86_400

    assert shard.sends()
