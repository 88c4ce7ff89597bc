"""Throttles that outlast retries are reported to a callback before the caller gets the error."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import KeyRangeThrottledError, ThrottledError, UnprocessedError
from dynashard.testing.faults import conflict, lost_request, throttled, unprocessed
from dynashard.topology import Phase
from dynashard.transactions import Create, Transaction
from tests.engine.repository.moving_things import IDENTITY, Spot
from tests.engine.stored_things import Note, World, key, person

pytestmark = pytest.mark.engine

NOTE = {"tenant": "abc", "id": IDENTITY}

OPERATIONS: dict[str, tuple[str, Callable[[World], Any]]] = {
    "create": ("PutItem", lambda world: world.people.create(person(id="2"))),
    "replace": ("UpdateItem", lambda world: world.people.replace(person())),
    "update": ("UpdateItem", lambda world: world.people.update(key(), add={"visits": 1})),
    "delete": ("DeleteItem", lambda world: world.people.delete(key())),
    "get": ("GetItem", lambda world: world.people.get(key())),
    "exists": ("GetItem", lambda world: world.people.exists(key())),
}


@pytest.mark.parametrize(("request_", "attempt"), OPERATIONS.values(), ids=OPERATIONS)
def test_a_throttled_item_is_reported_with_its_logical_partition(
    world: World, request_: str, attempt: Callable[[World], Any]
) -> None:
    world.people.create(person())
    world.faults(throttled(request_))

    with pytest.raises(KeyRangeThrottledError) as refused:
        attempt(world)

    assert world.throttles == [("test.v1.Person", "test.v1.Person:abc", refused.value)]


def test_a_throttled_transaction_is_reported(world: World) -> None:
    Spot(world, 4, 8).enter(Phase.MOVE)
    world.faults(throttled("TransactWriteItems"))

    with pytest.raises(ThrottledError) as refused:
        world.notes.create(Note(**NOTE))

    assert world.throttles == [("test.v1.Note", "test.v1.Note:abc", refused.value)]


def test_a_transaction_that_is_throttled_again_and_again_is_given_up_long_before_a_conflict_is(world: World) -> None:
    world.retry_seconds = 1e6
    sent = world.faults(throttled("TransactWriteItems", nth=None))

    with pytest.raises(ThrottledError):
        Transaction(world.store, [Create(Note(**NOTE))]).run()

    assert sent.sent("TransactWriteItems") == 4


def test_retried_throttles_and_other_failures_are_not_reported(world: World) -> None:
    plan = [unprocessed("BatchWriteItem", keep=1), throttled("BatchGetItem"), conflict("UpdateItem")]
    transport = world.faults(*plan, lost_request("GetItem"))

    world.people.batch_write(put=[person()])
    world.people.batch_get([key()])
    world.people.update(key(), add={"visits": 1})
    with pytest.raises(Exception, match="lost"):
        world.people.get(key())

    assert transport.waiting == []
    assert world.throttles == []


@pytest.mark.parametrize("cause", ["left over", "throttled"])
def test_each_logical_partition_of_unprocessed_items_is_reported_once(world: World, cause: str) -> None:
    people = [person(tenant=tenant, id=str(number)) for tenant in ("abc", "xyz") for number in range(3)]
    left_over = unprocessed("BatchWriteItem", keep=4, nth=None)
    world.faults(throttled("BatchWriteItem", nth=None) if cause == "throttled" else left_over)

    with pytest.raises(UnprocessedError) as left:
        world.people.batch_write(put=people)

    assert [partition for _, partition, _ in world.throttles] == ["test.v1.Person:abc", "test.v1.Person:xyz"]
    errors = {error for _, _, error in world.throttles}
    if cause == "throttled":
        assert errors == {left.value.__cause__}
    else:
        assert [(error.reasons, error.operation) for error in errors] == [((), "BatchWriteItem")]


def test_a_throttled_search_through_all_shards_is_reported(world: World) -> None:
    world.faults(throttled("BatchGetItem", nth=None))

    with pytest.raises(KeyRangeThrottledError):
        world.events.get({"tenant": "abc", "id": "1"})
    with pytest.raises(KeyRangeThrottledError):
        world.events.update({"tenant": "abc", "id": "1"}, set={"kind": "other"})

    assert {(entity, partition) for entity, partition, _ in world.throttles} == {("test.v1.Event", "test.v1.Event:abc")}
    assert len(world.throttles) == 2
