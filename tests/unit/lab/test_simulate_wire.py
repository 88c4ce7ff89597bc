"""The layer's transport in virtual time: throttles, retries, batches and transactions."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import KeyRangeThrottledError, ThrottledError
from dynashard.transport.interface import Call, Wire, metered
from dynashard_lab.simulate.engine.engine import Engine
from dynashard_lab.simulate.engine.tables import ITEM_TABLE, Database
from dynashard_lab.simulate.run import build
from dynashard_lab.simulate.scenario import Scenario
from dynashard_lab.simulate.wire import VirtualTransport, World

pytestmark = pytest.mark.unit


def world_with(**settings: Any) -> World:
    demands = {"d": {"partition": "p", "rate": 1}}
    parts = {"settings": settings, "indexes": {name: {} for name in ITEM_TABLE.indexes}, "demands": demands}
    scenario = Scenario.model_validate({"title": "t", "question": "q", "seconds": 1, **parts})
    return World(Engine(Database(items=ITEM_TABLE)), {"items": build(scenario)})


def in_turn(world: World, body: Callable[[], Any]) -> Any:
    """Run a body as an actor, and return what it returns."""
    answers: list[Any] = []
    world.actors.spawn(lambda: answers.append(body()))
    world.actors.run()
    return answers[0]


def item(place: str, sort: str, size: int = 1_024) -> Wire:
    return {"PK": {"S": place}, "SK": {"S": sort}, "d": {"S": "x" * (size - len(place) - len(sort) - 5)}}


def put(place: str, sort: str, size: int = 1_024) -> Wire:
    return {"TableName": "items", "Item": item(place, sort, size)}


def test_consumed_units_are_those_of_the_items_size() -> None:
    world = world_with()

    def body() -> tuple[Wire, float, float]:
        transport = VirtualTransport(world)
        with metered() as meter:
            answer = transport.call("PutItem", put("a", "1", 2_049))
            transport.call("GetItem", {"TableName": "items", "Key": {"PK": {"S": "a"}, "SK": {"S": "1"}}})
        return answer, meter.consumed.write_units, meter.consumed.read_units

    answer, written, read = in_turn(world, body)

    assert answer["ConsumedCapacity"]["CapacityUnits"] == 3
    assert (written, read) == (3, 0.5)


def test_throttle_is_retried_in_virtual_time_and_raised_by_its_reason() -> None:
    world = world_with(partition_write_units=1)

    def body() -> None:
        transport = VirtualTransport(world)
        transport.call("PutItem", put("a", "1", 300_000))  # It leaves the partition far below zero.
        transport.call("PutItem", put("a", "2"))

    with pytest.raises(KeyRangeThrottledError) as caught:
        in_turn(world, body)

    assert caught.value.reasons[0].reason == "TableWriteKeyRangeThroughputExceeded"
    assert 0 < world.actors.seconds < 10
    assert world.traffic.throttled == 4


def test_batch_leaves_unprocessed_what_is_throttled() -> None:
    world = world_with()
    large = [{"PutRequest": {"Item": item("a", str(number), 300_000)}} for number in range(10)]

    answer = in_turn(world, lambda: VirtualTransport(world).call("BatchWriteItem", {"RequestItems": {"items": large}}))

    assert len(answer["UnprocessedItems"]["items"]) == 7
    assert answer["ConsumedCapacity"] == [{"TableName": "items", "CapacityUnits": 3 * 293.0}]


def test_batch_of_which_nothing_is_admitted_is_throttled() -> None:
    world = world_with(partition_write_units=1)
    many = [{"PutRequest": {"Item": item("a", str(number), 400_000)}} for number in range(3)]

    def body() -> None:
        transport = VirtualTransport(world)
        transport.call("BatchWriteItem", {"RequestItems": {"items": many}})
        transport.call("BatchWriteItem", {"RequestItems": {"items": many}})

    with pytest.raises(ThrottledError):
        in_turn(world, body)


def test_calls_at_the_same_time_are_retried_at_the_same_time() -> None:
    world = world_with()

    def body() -> tuple[list[Any], float]:
        transport = VirtualTransport(world, request_seconds=0.01)
        calls = [Call("PutItem", put("a", str(number), 250_000)) for number in range(6)]
        return transport.try_all(calls), world.actors.seconds

    answers, seconds = in_turn(world, body)

    assert any(isinstance(answer, ThrottledError) for answer in answers) or seconds > 0.01
    assert seconds < 4
    assert any("ConsumedCapacity" in answer for answer in answers if isinstance(answer, dict))


def test_transaction_costs_twice_as_much_in_the_table_and_once_in_an_index() -> None:
    world = world_with()
    entry = {"GSI1PK": {"S": "g"}, "GSI1SK": {"S": "h"}}
    action = {"Put": {"TableName": "items", "Item": {**item("a", "1", 900), **entry}}}

    answer = in_turn(world, lambda: VirtualTransport(world).call("TransactWriteItems", {"TransactItems": [action]}))

    assert answer["ConsumedCapacity"] == [{"TableName": "items", "CapacityUnits": 3.0}]
