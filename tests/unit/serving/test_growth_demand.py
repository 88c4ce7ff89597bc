"""What a process asks for and gets is counted while throttles go on, without changing any request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from dynashard.errors import ConditionFailedError, EngineUnavailableError, ThrottledError
from dynashard.growth.demand import CountingTransport, Demand, Place, Tally
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.interface import Call, Resend, Wire
from tests.unit.serving.growth_policy_world import throttle

pytestmark = pytest.mark.unit

WRITES, READS = Place(None, writing=True), Place(None, writing=False)
ITEM = {"PK": {"S": "a:1"}, "SK": {"S": "x"}, "GSI1PK": {"S": "i:2"}, "GSI1SK": {"S": "x"}}
KEY = {"PK": {"S": "a:1"}, "SK": {"S": "x"}}
PUT = {"TableName": "table", "Item": ITEM}
GET = {"TableName": "table", "Key": KEY}


@dataclass
class Answering(OneByOne):
    """A transport that gives the same answer to each request, or raises."""

    answer: Wire = field(default_factory=dict)
    trouble: Exception | None = None
    sent: list[Call] = field(default_factory=list)
    closed: bool = False

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        self.sent.append(Call(operation, request, resend))
        if self.trouble is not None:
            raise self.trouble
        return self.answer

    def close(self) -> None:
        self.closed = True


class Counted:
    """A counting transport with a clock."""

    def __init__(self, answer: Wire | None = None, *, active: bool = True) -> None:
        self.now = 1000.0
        self.inner = Answering(answer or {})
        self.demand = Demand(lambda: self.now)
        self.transport = CountingTransport(self.inner, "table", self.demand)
        if active:
            self.demand.throttled(WRITES, "a")

    def admitted(self, place: Place = WRITES) -> dict[str, int]:
        return sums(self.demand.tallies(place))


def sums(tallies: list[Tally]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tally in tallies:
        for key, count in tally.admitted.items():
            counts[key] = counts.get(key, 0) + count
    return counts


def test_nothing_is_counted_before_the_first_throttle() -> None:
    world = Counted(active=False)

    world.transport.call("PutItem", PUT)
    world.transport.call_all([Call("PutItem", PUT)])
    world.transport.try_all([Call("PutItem", PUT)])

    assert world.demand.tallies(WRITES) == []
    assert len(world.inner.sent) == 3


@pytest.mark.parametrize(
    ("operation", "request_", "answer", "place", "counted"),
    [
        ("PutItem", PUT, {}, WRITES, {"a:1": 1}),
        ("PutItem", PUT, {}, Place("GSI1", writing=True), {"i:2": 1}),
        ("UpdateItem", GET, {}, WRITES, {"a:1": 1}),
        ("UpdateItem", GET, {"Attributes": ITEM}, WRITES, {"a:1": 1}),
        ("UpdateItem", GET, {"Attributes": ITEM}, Place("GSI1", writing=True), {"i:2": 1}),
        ("PutItem", PUT, {"Attributes": {**ITEM, "GSI1PK": {"S": "old"}}}, Place("GSI1", writing=True), {"i:2": 1}),
        ("DeleteItem", GET, {}, WRITES, {"a:1": 1}),
        ("GetItem", GET, {}, READS, {"a:1": 1}),
        ("PutItem", {**PUT, "TableName": "another"}, {}, WRITES, {}),
        ("DescribeTable", {"TableName": "table"}, {}, WRITES, {}),
        ("Scan", {"TableName": "table"}, {}, READS, {}),
        ("Query", {"TableName": "table"}, {}, READS, {}),
        (
            "Query",
            {"TableName": "table", "ExpressionAttributeValues": {":partition": {"S": "a:0"}}},
            {},
            READS,
            {"a:0": 1},
        ),
        (
            "Query",
            {"TableName": "table", "IndexName": "GSI2", "ExpressionAttributeValues": {":partition": {"S": "i:0"}}},
            {},
            Place("GSI2", writing=False),
            {"i:0": 1},
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"table": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": KEY}}], "x": []}},
            {"UnprocessedItems": {"table": [{"DeleteRequest": {"Key": KEY}}]}},
            WRITES,
            {"a:1": 1},
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"table": {"Keys": [KEY, {**KEY, "SK": {"S": "y"}}]}}},
            {"UnprocessedKeys": {"table": {"Keys": [KEY]}}},
            READS,
            {"a:1": 1},
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": PUT}, {"ConditionCheck": GET}, {"Put": {**PUT, "TableName": "another"}}]},
            {},
            WRITES,
            {"a:1": 2},
        ),
        ("TransactGetItems", {"TransactItems": [{"Get": GET}]}, {}, READS, {"a:1": 1}),
    ],
)
def test_executed_requests_are_counted_by_stored_partition_key(
    operation: str, request_: Wire, answer: Wire, place: Place, counted: dict[str, int]
) -> None:
    world = Counted(answer)

    assert world.transport.call(operation, request_, resend=Resend.ALWAYS) == answer

    assert world.admitted(place) == counted
    assert world.inner.sent == [Call(operation, request_, Resend.ALWAYS)]


def test_throttled_requests_are_counted_by_stored_partition_key() -> None:
    left = {"UnprocessedItems": {"table": [{"DeleteRequest": {"Key": KEY}}]}}
    world = Counted(left)
    world.transport.call("BatchWriteItem", {"RequestItems": {"table": [{"DeleteRequest": {"Key": KEY}}]}})
    world.inner.trouble = throttle()

    with pytest.raises(ThrottledError):
        world.transport.call("PutItem", PUT)
    world.transport.try_all([Call("PutItem", PUT)])

    [tally] = world.demand.tallies(WRITES)
    assert (tally.refused, tally.admitted) == ({"a:1": 3}, {})


def test_of_a_throttled_transaction_only_the_throttled_steps_are_counted() -> None:
    world = Counted()
    error = throttle()
    error.actions = [1]
    world.inner.trouble = error
    another = {**GET, "Key": {**KEY, "PK": {"S": "b:1"}}}

    with pytest.raises(ThrottledError):
        world.transport.call("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Delete": another}]})

    [tally] = world.demand.tallies(WRITES)
    assert tally.refused == {"b:1": 1}


@pytest.mark.parametrize(
    ("trouble", "counted"),
    [(ConditionFailedError("no", operation="PutItem", item=None), {"a:1": 1}), (EngineUnavailableError("gone"), {})],
)
def test_a_failed_condition_has_consumed_its_units_and_a_failure_has_not(
    trouble: Exception, counted: dict[str, int]
) -> None:
    world = Counted()
    world.inner.trouble = trouble

    with pytest.raises(type(trouble)):
        world.transport.call("PutItem", PUT)

    assert world.admitted() == counted


def test_several_calls_are_counted_each_and_the_first_error_is_raised() -> None:
    world = Counted()

    assert world.transport.call_all([Call("PutItem", PUT), Call("GetItem", GET)]) == [{}, {}]
    world.inner.trouble = EngineUnavailableError("gone")
    with pytest.raises(EngineUnavailableError):
        world.transport.call_all([Call("PutItem", PUT)])

    assert (world.admitted(), world.admitted(READS)) == ({"a:1": 1}, {"a:1": 1})


def test_counts_are_kept_for_two_windows() -> None:
    world = Counted()
    world.transport.call("PutItem", PUT)

    world.now += 20
    in_the_next = world.admitted()
    world.now += 20

    assert (in_the_next, world.admitted()) == ({"a:1": 1}, {})


def test_counts_are_kept_if_nothing_is_asked_meanwhile() -> None:
    world = Counted()
    world.transport.call("PutItem", PUT)

    world.now += 39.9

    assert world.admitted() == {"a:1": 1}


def test_counts_of_a_window_long_ago_are_not_the_previous_ones() -> None:
    world = Counted()
    world.transport.call("PutItem", PUT)

    world.now += 41

    assert world.admitted() == {}


@pytest.mark.parametrize("seconds", [0.5, 5])
def test_a_clock_that_was_set_back_forgets_the_counts(seconds: float) -> None:
    world = Counted()
    world.transport.call("PutItem", PUT)

    world.now -= seconds

    assert world.admitted() == {}


def test_counting_ends_a_minute_after_the_last_throttle() -> None:
    world = Counted()

    world.now += 60
    world.transport.call("PutItem", PUT)

    assert not world.demand.active
    world.demand.throttled(WRITES, "a")
    assert (world.demand.active, world.demand.seconds()) == (True, 0.0)


@pytest.mark.parametrize(("seconds", "active"), [(25.0, True), (59.9, True), (60.0, False), (-5.0, False)])
def test_counting_goes_on_for_a_minute_of_a_clock_that_is_not_set_back(seconds: float, *, active: bool) -> None:
    world = Counted()

    world.now += seconds
    world.transport.call("PutItem", PUT)

    assert world.demand.active is active


def test_a_throttle_before_the_minute_is_over_prolongs_the_count() -> None:
    world = Counted()
    world.now += 30
    world.demand.throttled(WRITES, "a")

    world.now += 59
    world.transport.call("PutItem", PUT)

    assert (world.demand.active, world.demand.seconds(), world.admitted()) == (True, 89.0, {"a:1": 1})


def test_requests_that_were_executed_after_throttles_are_counted_over_two_windows() -> None:
    world = Counted(active=False)

    counts = [world.demand.retried(WRITES, "a:1", "a") for _ in range(2)]
    world.now += 20
    counts += [world.demand.retried(WRITES, "a:1", "a"), world.demand.retried(WRITES, "b:0", "b")]
    world.now += 20
    counts.append(world.demand.retried(WRITES, "a:1", "a"))

    assert counts == [1, 2, 3, 1, 2]
    refused = [tally.refused for tally in world.demand.tallies(WRITES)]
    assert refused == [{"a:1": 1, "b:0": 1}, {"a:1": 1}]


def test_requests_executed_after_throttles_are_not_counted_for_more_records_than_are_kept() -> None:
    world = Counted(active=False)
    kept = [world.demand.retried(WRITES, "a:1", str(number)) for number in range(4096)]

    assert {*kept} == {1}
    assert [world.demand.retried(WRITES, "a:1", key) for key in ("0", "another")] == [2, 0]


@pytest.mark.parametrize(
    ("operation", "request_", "created"),
    [
        ("PutItem", PUT, {"a:1": 1}),
        ("PutItem", {**PUT, "ConditionExpression": "attribute_not_exists(PK)"}, {"a:1": 1}),
        ("PutItem", {**PUT, "ConditionExpression": "attribute_exists(PK)"}, {}),
        ("PutItem", {**PUT, "TableName": "another"}, {}),
        ("PutItem", {"TableName": "table", "Item": {"GSI1PK": {"S": "i:2"}}}, {}),
        ("UpdateItem", GET, {}),
        ("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Delete": GET}]}, {"a:1": 1}),
        ("BatchWriteItem", {"RequestItems": {"table": [{"PutRequest": {"Item": ITEM}}] * 2}}, {"a:1": 2}),
        ("BatchWriteItem", {"RequestItems": {"table": [{"DeleteRequest": {"Key": KEY}}]}}, {}),
    ],
)
def test_what_may_have_created_an_item_is_counted(operation: str, request_: Wire, created: dict[str, int]) -> None:
    world = Counted()

    world.transport.call(operation, request_)

    assert [tally.created for tally in world.demand.tallies(WRITES)] == [created]


def test_throttles_are_counted_by_scope_and_place() -> None:
    world = Counted()

    world.demand.throttled(WRITES, "b")
    world.demand.throttled(READS, "b")

    [tally] = world.demand.tallies(WRITES)
    assert (tally.throttled, tally.all_throttled) == ({"a": 1, "b": 1}, 2)


def test_memory_is_bounded_and_the_sums_are_not() -> None:
    world = Counted()

    for number in range(5000):
        world.demand.throttled(WRITES, str(number))
        world.transport.call("PutItem", {"TableName": "table", "Item": {"PK": {"S": str(number)}}})

    world.transport.call("PutItem", {"TableName": "table", "Item": {"PK": {"S": "0"}}})

    [tally] = world.demand.tallies(WRITES)
    assert (len(tally.admitted), len(tally.throttled)) == (4096, 4096)
    assert (tally.all_admitted, tally.all_throttled) == (5001, 5001)
    assert (tally.admitted["0"], tally.admitted["1"]) == (2, 1)


def test_a_throttled_request_is_not_counted_before_counting_has_begun() -> None:
    world = Counted(active=False)
    world.inner.trouble = throttle()

    with pytest.raises(ThrottledError):
        world.transport.call("PutItem", PUT)

    assert world.demand.tallies(WRITES) == []


def test_closing_closes_the_transport_within() -> None:
    world = Counted()

    world.transport.close()

    assert world.inner.closed
