"""For throttles without a reason, the load of the table decides whether a count grows."""

import pytest

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
    assert below or "1 of 2 units" in world.reports[0].reason


def test_a_throttled_read_requests_the_read_load() -> None:
    world, loads = World(), Loads()

    world.process(load=loads).throttled(entity(), "thing.v1.Thing:abc", throttle("", operation="Query"))

    assert loads.asked == [False]


def test_the_load_is_requested_once_a_minute_until_it_is_known() -> None:
    world, loads = World(), Loads(None)
    growth = world.process(load=loads)

    for _ in range(10):
        growth.throttled(entity(), "thing.v1.Thing:abc", NO_REASON)
    world.now += 60
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
