"""A count that waits to be halved keeps its shards at the first throttle, because they are needed."""

import pytest

from dynashard import Shards
from dynashard.errors import DynashardError, EngineUnavailableError, ReshardRefusedError, TopologyChangedError
from dynashard.growth.terms import CountState, GrowthEvent
from tests.unit.serving.growth_policy_world import DAY, HOT, START, World, entity

pytestmark = pytest.mark.unit

RANDOM = entity(Shards(1, max=64, placement="random"))
A, B = "thing.v1.Thing:a", "thing.v1.Thing:b"


def narrowing(*keys: str, trouble: Exception | None = None) -> World:
    state = CountState(4, START - DAY, busy=True, narrowing=True, target=2)
    return World(counts=dict.fromkeys(keys, state), trouble=trouble)


def test_the_first_throttle_takes_the_resize_of_its_partition_back_and_says_so() -> None:
    world = narrowing(A, B)
    growth = world.process(waits=False)

    for key in (A, B):
        growth.throttled(RANDOM, key, HOT)

    assert (world.withdrawn, world.asked) == ([A, B], [])
    assert [(each.event, each.partition) for each in world.reports] == [
        (GrowthEvent.WITHDRAWN, A),
        (GrowthEvent.WITHDRAWN, B),
    ]
    assert world.reports[0].reason == f"{A} is hot: it keeps its 4 shards, 2 of which it was to keep"


@pytest.mark.parametrize(("cooldown", "seconds"), [(300.0, 60.0), (20.0, 20.0)])
def test_it_is_looked_for_once_a_minute_or_once_in_a_shorter_cooldown(cooldown: float, seconds: float) -> None:
    world = narrowing(A)
    growth = world.process(waits=False, cooldown_seconds=cooldown, wait_low=500, wait_high=500)

    for after in (0.0, seconds - 1, 1.0):
        world.now += after
        growth.throttled(RANDOM, A, HOT)

    assert (world.withdrawn, world.reads) == ([A, A], 2)


def test_a_dry_run_takes_nothing_back() -> None:
    world = narrowing(A)

    world.process(waits=False, mode="dry_run").throttled(RANDOM, A, HOT)

    assert (world.withdrawn, world.reads) == ([], 0)


@pytest.mark.parametrize(
    ("trouble", "events"),
    [
        (ReshardRefusedError("no resize", reason="not_running"), []),
        (TopologyChangedError("another took it back"), []),
        (EngineUnavailableError("gone"), [GrowthEvent.FAILED]),
    ],
    ids=["over", "another", "unreachable"],
)
def test_what_cannot_be_taken_back_fails_no_request(trouble: DynashardError, events: list[GrowthEvent]) -> None:
    world = narrowing(A, trouble=trouble)

    world.process(waits=False).throttled(RANDOM, A, HOT)

    assert (world.withdrawn, world.events) == ([], events)
    assert all(str(trouble) in each.reason for each in world.reports)
