"""The growth policy halves counts after a long quiet time."""

from datetime import datetime

import pytest
from msgspec.structs import replace

from dynashard import Entity, Key, Registry, Shards, definition
from dynashard.growth.terms import CountState, GrowthEvent
from dynashard.topology import Record
from tests.declaring import declare
from tests.unit.serving.growth_policy_world import DAY, Loads, World, entity, record

pytestmark = pytest.mark.unit

LOGS = Registry()


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        (record("thing.v1.Thing:abc", 64), 32),
        (record("thing.v1.Thing|GSI1", 16), 8),
        (record("thing.v1.Thing:abc", 64, resize={"cause": "throttle"}), 32),
        (record("thing.v1.Thing:abc", 64, age=DAY - 1), None),
        (record("thing.v1.Thing:abc", 16), None),
        (record("thing.v1.Thing|GSI1", 4), None),
        (record("thing.v1.Thing", 64), None),
        (record("thing.v1.Thing:abc", 0), None),
        (record("thing.v1.Thing:abc", 64, target=128), None),
        (record("thing.v1.Thing:abc", 64, swept=False), None),
        (record("thing.v1.Thing:abc", 64, resize={"cause": "operator"}), None),
    ],
    ids=[
        "partition", "index", "grown by itself", "not long enough", "declared", "index as declared", "whole family",
        "unsharded", "changing", "not swept", "set by an operator",
    ],
)  # fmt: skip
def test_a_count_is_halved_after_a_long_quiet_time_down_to_the_declared_one(stored: Record, target: int | None) -> None:
    world = World(counts={stored.key: CountState(stored.count, 0.0, busy=False)})

    reports = world.shrinking(load=Loads()).shrink([stored], [entity()])

    assert world.asked == ([(stored.key, target)] if target else [])
    assert [each.event for each in reports] == ([GrowthEvent.ASKED] if target else [])
    assert reports == world.reports


@pytest.mark.parametrize("shards", [Shards(10, "modulo"), None], ids=["modulo", "no longer sharded"])
def test_counts_that_cannot_change_are_not_halved(shards: Shards | None) -> None:
    thing = definition(declare(shards=shards))

    assert World().shrinking().shrink([record("thing.v1.Thing:abc", 32)], [thing]) == []


def test_the_parts_of_a_value_only_become_more() -> None:
    fields = {"part": int, "until": (datetime | None, None)}
    parts = declare(
        fields, key=Key("{tenant}", "{part:04d}"), shards=Shards(2, max=64, placement="parts"), expires="until"
    )

    assert World().shrinking().shrink([record("thing.v1.Thing:abc", 32)], [definition(parts)]) == []


def test_the_table_and_each_index_are_asked_about_once_and_each_decides_for_itself() -> None:
    world, loads = World(), Loads(calmness=None, calm_index=True)
    keys = ["thing.v1.Thing:a", "thing.v1.Thing:b", "thing.v1.Thing|GSI1"]
    world.counts = {key: CountState(64, 0.0, busy=False) for key in keys}

    world.shrinking(load=loads).shrink([record(key, 64) for key in keys], [entity()])

    assert (loads.calms, world.asked) == ([None, "GSI1"], [("thing.v1.Thing|GSI1", 32)])


@pytest.mark.parametrize("calm", [False, None])
def test_no_count_is_halved_after_throttles_or_with_unknown_load(*, calm: bool | None) -> None:
    loads = Loads(calmness=calm)

    assert World().shrinking(load=loads).shrink([record("thing.v1.Thing:abc", 64)], [entity()]) == []


def test_a_count_that_grew_again_after_halving_stays_twice_as_long() -> None:
    history = frozenset({"1:16", "100:32", "200:16", "300:32", "400:64"})
    twice = replace(record("thing.v1.Thing:abc", 32, age=2 * DAY - 1), history=history - {"400:64"})
    first = replace(record("thing.v1.Thing:other", 64), history=history)
    world = World(counts={"thing.v1.Thing:abc": CountState(32, 0.0, busy=False)})
    world.counts["thing.v1.Thing:other"] = CountState(64, 0.0, busy=False)
    shrinking = world.shrinking()

    shrinking.shrink([twice, first], [entity()])
    early = list(world.asked)
    world.now += 1
    shrinking.shrink([twice], [entity()])

    assert early == [("thing.v1.Thing:other", 32)]
    assert world.asked[1:] == [("thing.v1.Thing:abc", 16)]


@pytest.mark.parametrize(
    ("history", "days"),
    [
        ({"1:16", "100:32", "200:64", "300:32"}, 1),
        ({"1:16", "100:32", "200:16", "300:32"}, 2),
        ({"1:16", "100:32", "200:16", "300:32", "400:16", "500:32"}, 4),
    ],
    ids=["halved to it", "grown again", "grown again twice"],
)
def test_the_quiet_time_doubles_with_each_time_that_a_count_grew_again(history: set[str], days: int) -> None:
    halved = []
    for age in (days * DAY - 1, days * DAY):
        stored = replace(record("thing.v1.Thing:abc", 32, age=age), history=frozenset(history))
        world = World(counts={"thing.v1.Thing:abc": CountState(32, 0.0, busy=False)})
        world.shrinking().shrink([stored], [entity()])
        halved.append(len(world.asked))

    assert halved == [0, 1]


class Ping(
    Entity,
    name="log.v1.Ping",
    key=Key("{tenant}", "ping#{id}", "log"),
    shards=Shards(2, max=64, placement="random"),
    expires="until",
    registry=LOGS,
):
    tenant: str
    id: str
    until: datetime | None = None


class Entry(
    Entity,
    name="log.v1.Entry",
    key=Key("{tenant}", "entry#{id}", "log"),
    shards=Shards(2, max=64, placement="random"),
    registry=LOGS,
):
    tenant: str
    id: str


@pytest.mark.parametrize(("models", "halved"), [((Ping,), 1), ((Ping, Entry), 0), ((Entry, Ping), 0)])
def test_random_placement_is_halved_only_if_every_entity_of_the_partition_expires(
    models: tuple[type[Entity], ...], halved: int
) -> None:
    world = World(counts={"log:abc": CountState(64, 0.0, busy=False)})

    reports = world.shrinking(load=Loads()).shrink([record("log:abc", 64)], [definition(each) for each in models])

    assert len(reports) == halved


def test_a_dry_run_halves_nothing() -> None:
    world = World()

    reports = world.shrinking(mode="dry_run").shrink([record("thing.v1.Thing:abc", 64)], [entity()])

    assert (world.asked, [each.event for each in reports]) == ([], [GrowthEvent.WOULD_ASK])


def test_a_disabled_policy_halves_nothing() -> None:
    world = World()

    assert world.shrinking(mode="off").shrink([record("thing.v1.Thing:abc", 64)], [entity()]) == []
    assert (world.asked, world.reports) == ([], [])
