"""The model of partitions before a real engine: what it throttles, forwards and charges."""

from random import Random
from typing import Any

import pytest

from dynashard.errors import ThrottleReason
from dynashard.transport.interface import Wire
from dynashard_lab.simulate.live import LiveModel, scaled
from dynashard_lab.simulate.live_throttles import ThrottleLog
from dynashard_lab.simulate.model import Access
from dynashard_lab.simulate.scenario import Scenario, load
from dynashard_lab.simulate.throttle import Throttle

pytestmark = pytest.mark.unit


class Time:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def live(time: Time | None = None, scenario: str = "hot-tenant") -> LiveModel:
    return LiveModel(scaled(next(iter(load(scenario).values()))), time or Time())


def item(sort: str, size: int = 1_000, **more: Wire) -> Wire:
    return {"PK": {"S": "user.v1.User:a:0"}, "SK": {"S": sort}, "d": {"S": "x" * (size - 90)}, **more}


def put(sort: str, size: int = 1_000) -> Wire:
    return {"TableName": "t", "Item": item(sort, size)}


def test_a_partition_writes_a_500th_of_its_limit() -> None:
    time = Time()
    model = live(time)

    first = [model.decide("PutItem", put(str(number))).refused for number in range(25)]
    time.now += 1
    later = model.decide("PutItem", put("later")).refused

    assert [each is None for each in first] == [True] * 10 + [False] * 15
    assert first[-1] is not None
    assert first[-1]["throttlingReasons"][0]["reason"] == "TableWriteKeyRangeThroughputExceeded"
    assert later is None


@pytest.mark.parametrize(("share", "throttled"), [(1 / 3, False), (1.5, True)])
def test_callers_that_use_a_third_of_a_limit_are_not_throttled_by_chance(share: float, *, throttled: bool) -> None:
    time, draw = Time(), Random(4)
    model = live(time)

    refused = 0
    for number in range(400):
        time.now += draw.expovariate(2 * share)
        refused += model.decide("PutItem", put(str(number))).refused is not None

    assert (refused > 20) is throttled
    assert throttled or refused == 0


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

    assert decision.request["RequestItems"] == {"t": actions[:10]}
    assert answer["UnprocessedItems"] == {"t": actions[10:]}
    assert again.refused is not None


def test_batch_of_reads_keeps_its_options() -> None:
    model = live()
    keys = [{"PK": {"S": "user.v1.User:a:0"}, "SK": {"S": str(number)}} for number in range(40)]
    request = {"RequestItems": {"t": {"Keys": keys, "ConsistentRead": True}}}

    decision = model.decide("BatchGetItem", request)

    assert decision.request["RequestItems"]["t"] == {"Keys": keys[:30], "ConsistentRead": True}
    assert decision.unprocessed["t"] == {"Keys": keys[30:], "ConsistentRead": True}


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
    model = live(scenario="hot-index")
    values = {":pk": {"S": "user.v1.User:a:0"}, ":sk": {"S": "a"}}
    request = {
        "TableName": "t",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        **index,
    }

    refused = [model.decide("Query", request).refused for _ in range(31)]

    assert [each is None for each in refused] == [True] * 30 + [False]


def test_an_index_that_the_scenario_does_not_name_has_no_limits() -> None:
    model = live()
    index = {"GSI1PK": {"S": "user.v1.User:legal"}, "GSI1SK": {"S": "1"}}
    puts = [
        {"TableName": "t", "Item": {**item("1"), "PK": {"S": f"user.v1.User:a:{number}"}, **index}}
        for number in range(9)
    ]
    query = {
        "TableName": "t",
        "IndexName": "GSI1",
        "KeyConditionExpression": "GSI1PK = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "user.v1.User:legal"}},
    }

    decisions = [model.decide("PutItem", each) for each in puts]

    assert [(each.refused, each.estimated) for each in decisions] == [(None, 2.0)] * 9
    assert [model.decide("Query", query).refused for _ in range(90)] == [None] * 90


def test_what_was_throttled_is_counted_by_cause_and_key() -> None:
    time = Time()
    model = live(time)
    for number in range(13):
        model.decide("PutItem", put(str(number)))
    actions = [{"PutRequest": {"Item": item("again")}}]
    model.decide("BatchWriteItem", {"RequestItems": {"t": actions}})
    model.decide("TransactWriteItems", {"TransactItems": [{"Put": put("again")}]})

    found = model.throttled(60)
    time.now += 100
    later = model.throttled(60)

    key = "user.v1.User:a:0"
    assert found["throttles"] == [[None, "Write", "KeyRangeThroughput", 5]]
    assert found["keys"][:2] == [[None, key, None, 5], [None, key, "again", 2]]
    assert (later, model.throttled(900)) == ({"throttles": [], "keys": []}, found)


def test_a_log_of_throttles_is_bounded() -> None:
    log, throttle = ThrottleLog(), live_throttle()
    for number in range(3_000):
        log.add(1.0, throttle, [Access(str(number), "x", 1.0)])

    assert len(log.summary(1.0, 60)["keys"]) == 100
    assert log.summary(1.0, 60)["throttles"][0][-1] == 3_000


def live_throttle() -> Throttle:
    reason = ThrottleReason("TableWriteKeyRangeThroughputExceeded", "table")
    return Throttle((reason, ThrottleReason("", "table")), provisioned=False)


@pytest.mark.parametrize("request_", [{"TableName": "t"}, {"TableName": "t", "KeyConditionExpression": "a."}])
def test_what_it_does_not_understand_is_forwarded(request_: dict[str, Any]) -> None:
    assert live().decide("Query", request_).request is request_


def test_scaling_leaves_times_as_they_are_except_of_heat() -> None:
    scenario: Scenario = load("prime-time")["scheduled"]

    found = scaled(scenario, 0.1)

    assert found.settings.partition_write_units == 100
    assert found.settings.heat_split_seconds == scenario.settings.heat_split_seconds / 20
    assert found.settings.on_demand_growth_seconds == scenario.settings.on_demand_growth_seconds
    assert [at for at, _ in found.table.schedule] == [at for at, _ in scenario.table.schedule]
    assert found.table.schedule[0][1] == pytest.approx(scenario.table.schedule[0][1] / 10)
