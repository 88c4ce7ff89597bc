"""The model of partitions before a real engine: what it throttles, forwards and charges."""

from typing import Any

import pytest

from dynashard.transport.interface import Wire
from tools.simulate.live import LiveModel, scaled
from tools.simulate.scenario import Scenario, load

pytestmark = pytest.mark.unit


class Time:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def live(time: Time | None = None) -> LiveModel:
    return LiveModel(scaled(load("hot-tenant")["1 shard"]), time or Time())


def item(sort: str, size: int = 1_000, **more: Wire) -> Wire:
    return {"PK": {"S": "user.v1.User:a:0"}, "SK": {"S": sort}, "d": {"S": "x" * (size - 40)}, **more}


def put(sort: str, size: int = 1_000) -> Wire:
    return {"TableName": "t", "Item": item(sort, size)}


def test_a_partition_writes_a_50th_of_its_limit() -> None:
    time = Time()
    model = live(time)

    first = [model.decide("PutItem", put(str(number))).refused for number in range(25)]
    time.now += 1
    later = model.decide("PutItem", put("later")).refused

    assert [each is None for each in first] == [True] * 20 + [False] * 5
    assert first[-1] is not None
    assert first[-1]["throttlingReasons"][0]["reason"] == "TableWriteKeyRangeThroughputExceeded"
    assert later is None


def test_other_tables_have_no_limits() -> None:
    model = live()
    request = {"TableName": "topology", "Item": {"partition": {"S": "user.v1.User"}}}

    decisions = [model.decide("PutItem", request) for _ in range(1_000)]

    assert all(decision.refused is None and not decision.estimated for decision in decisions)


def test_batch_is_forwarded_without_what_is_throttled() -> None:
    model = live()
    actions = [{"PutRequest": {"Item": item(str(number))}} for number in range(25)]

    decision = model.decide("BatchWriteItem", {"RequestItems": {"t": actions}})
    answer = model.answered("BatchWriteItem", decision, {"UnprocessedItems": {}})
    again = model.decide("BatchWriteItem", {"RequestItems": {"t": actions}})

    assert decision.request["RequestItems"] == {"t": actions[:20]}
    assert answer["UnprocessedItems"] == {"t": actions[20:]}
    assert again.refused is not None


def test_batch_of_reads_keeps_its_options() -> None:
    model = live()
    keys = [{"PK": {"S": "user.v1.User:a:0"}, "SK": {"S": str(number)}} for number in range(70)]
    request = {"RequestItems": {"t": {"Keys": keys, "ConsistentRead": True}}}

    decision = model.decide("BatchGetItem", request)

    assert decision.request["RequestItems"]["t"] == {"Keys": keys[:60], "ConsistentRead": True}
    assert decision.unprocessed["t"] == {"Keys": keys[60:], "ConsistentRead": True}


def test_units_beyond_the_estimate_are_charged_with_the_answer() -> None:
    model = live()
    request = {"TableName": "t", "Key": {"PK": {"S": "user.v1.User:a:0"}, "SK": {"S": "1"}}}

    decision = model.decide("UpdateItem", request)
    model.answered("UpdateItem", decision, {"ConsumedCapacity": {"TableName": "t", "CapacityUnits": 40.0}})

    assert decision.estimated == 1
    assert model.decide("UpdateItem", request).refused is not None


def test_throttled_transaction_names_its_actions() -> None:
    model = live()
    actions = [{"Put": put(str(number), 9_000)} for number in range(2)]
    model.decide("PutItem", put("before"))

    refused = model.decide("TransactWriteItems", {"TransactItems": actions}).refused

    assert refused is not None
    assert [reason["Code"] for reason in refused["CancellationReasons"]] == ["ThrottlingError", "ThrottlingError"]


@pytest.mark.parametrize(
    ("condition", "index"), [("PK = :pk AND SK > :sk", {}), ("GSI1PK = :pk AND GSI1SK > :sk", {"IndexName": "GSI1"})]
)
def test_queries_cost_units_where_they_read(condition: str, index: Wire) -> None:
    model = live()
    values = {":pk": {"S": "user.v1.User:a:0"}, ":sk": {"S": "a"}}
    request = {
        "TableName": "t",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        **index,
    }

    refused = [model.decide("Query", request).refused for _ in range(61)]

    assert [each is None for each in refused] == [True] * 60 + [False]


@pytest.mark.parametrize("request_", [{"TableName": "t"}, {"TableName": "t", "KeyConditionExpression": "a."}])
def test_what_it_does_not_understand_is_forwarded(request_: dict[str, Any]) -> None:
    assert live().decide("Query", request_).request is request_


def test_scaling_leaves_times_as_they_are() -> None:
    scenario: Scenario = load("prime-time")["scheduled"]

    found = scaled(scenario, 0.1)

    assert found.settings.partition_write_units == 100
    assert found.settings.heat_split_seconds == scenario.settings.heat_split_seconds
    assert [at for at, _ in found.table.schedule] == [at for at, _ in scenario.table.schedule]
    assert found.table.schedule[0][1] == pytest.approx(scenario.table.schedule[0][1] / 10)
