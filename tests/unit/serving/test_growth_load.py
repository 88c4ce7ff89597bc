"""For throttles without a reason, the load of the table decides whether a count grows."""

import pytest

from dynashard.growth.demand import Demand
from dynashard.growth.terms import GrowthEvent
from tests.unit.serving.growth_policy_world import NO_REASON, Loads, World, entity, throttle
from tests.unit.transport.test_transport_classification import classified

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("below", "asked", "events"),
    [
        (True, [("thing.v1.Thing:abc", 32)], [GrowthEvent.ASKED]),
        (False, [], [GrowthEvent.LIMIT]),
        (None, [], [GrowthEvent.UNKNOWN]),
    ],
)
def test_without_a_reason_the_load_decides(
    *, below: bool | None, asked: list[tuple[str, int]], events: list[GrowthEvent]
) -> None:
    world, loads = World(), Loads(below)

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert (world.asked, world.events, loads.asked) == (asked, events, [True])
    assert below or world.reports[0].reason == f"{NO_REASON} 1 of 2 units."


def test_reads_and_writes_are_asked_about_each_and_what_is_hot_is_bounded_by_what_the_table_gives_for_them() -> None:
    world, loads = World(), Loads()
    growth = world.process(load=loads)

    for error in (throttle("", operation="Query"), NO_REASON):
        growth.throttled(entity(), "thing.v1.Thing:abc", error)

    assert (loads.asked, loads.described) == ([False, True], [(None, False)])


def test_the_load_is_not_asked_about_a_partition_that_is_unknown() -> None:
    world, loads = World(), Loads()

    world.process(load=loads).throttled(entity(), None, NO_REASON)

    assert (loads.asked, world.events) == ([], [GrowthEvent.UNKNOWN])


def test_a_throttle_while_another_thread_asks_is_not_judged_by_an_old_load() -> None:
    world, loads = World(), Loads(below=None)
    growth = world.process(load=loads)
    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 3600
    loads.meanwhile = lambda: growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    loads.below = True

    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert (len(loads.asked), world.events) == (2, [GrowthEvent.UNKNOWN, GrowthEvent.ASKED])


def test_throttles_without_a_reason_show_the_demand_too() -> None:
    world = World()
    demand = Demand(lambda: world.now)
    growth = world.process(load=Loads(), demand=demand, waits=False)

    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    for shard in range(16):
        demand.admitted("PutItem", {"TableName": "t", "Item": {"PK": {"S": f"thing.v1.Thing:abc:{shard}"}}}, {}, "t")
    world.now += 10
    for _ in range(40):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_the_load_is_requested_once_a_minute_until_it_is_known() -> None:
    world, loads = World(), Loads(None)
    growth = world.process(load=loads)

    for _ in range(10):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 59.9
    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 0.1
    loads.below = True
    for _ in range(10):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert len(loads.asked) == 2
    assert world.asked == [("thing.v1.Thing:abc", 32)]


def test_a_known_load_serves_a_later_throttle_that_ends_the_wait() -> None:
    world, loads = World(), Loads()
    growth = world.process(load=loads, waits=False)

    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 6
    growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)

    assert (len(loads.asked), world.asked) == (1, [("thing.v1.Thing:abc", 32)])


def test_a_message_that_blames_the_indexes_grows_no_table() -> None:
    world, loads = World(), Loads()

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", classified("transaction_throttled"))

    assert (world.asked, loads.asked, world.events) == ([], [], [GrowthEvent.UNKNOWN])
