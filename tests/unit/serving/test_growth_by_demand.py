"""Counts grow to what demand needs: against the model of DynamoDB's partitions, in virtual time."""

from itertools import pairwise

import pytest

from dynashard import Shards
from dynashard.growth.terms import GrowthEvent
from tests.unit.serving.growth_loop import RESIZE_SECONDS, Loop

pytestmark = pytest.mark.unit

HOT = "thing.v1.Thing:hot"
TENANTS = [f"thing.v1.Thing:{number}" for number in range(1000)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("processes", [1, 2, 10])
def test_a_demand_of_16000_units_is_met_within_five_minutes_and_never_by_64_shards(processes: int) -> None:
    loop = Loop({HOT: 16_000.0}, processes=processes)

    loop.run(300)
    within_five_minutes = loop.count(HOT)
    loop.run(320)

    assert within_five_minutes in {16, 32}
    assert max(target for _, target in loop.world.asked) <= 32
    # Shards that meet on one physical partition share it until DynamoDB splits it.
    assert loop.admitted_share(60) > 0.6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_resize_is_enough_for_16000_units_where_nothing_moves(seed: int) -> None:
    loop = Loop({HOT: 16_000.0}, processes=10, shards=Shards(1, max=1024, placement="random"), seed=seed)

    loop.run(30)

    [(_, target)] = loop.world.asked
    assert target in {32, 64}


def test_requests_that_are_sent_again_count_once() -> None:
    loop = Loop({HOT: 6_000.0}, processes=2, pauses=(0.5, 1.0, 2.0))

    loop.run(60)

    assert loop.world.asked in ([(HOT, 4)], [(HOT, 8)])


@pytest.mark.deep
def test_a_demand_that_rises_is_followed_without_waiting_for_the_whole_cooldown() -> None:
    loop = Loop({HOT: 2_000.0}, processes=2)
    loop.run(60)
    loop.rates[HOT] = 16_000.0

    loop.run(640)

    targets = [target for _, target in loop.world.asked]
    first, second = loop.world.asked_at[:2]
    assert targets[0] in {2, 4}
    assert loop.count(HOT) in {16, 32}
    assert 60 <= second - first - RESIZE_SECONDS < 300


def test_a_demand_just_above_one_shard_takes_two() -> None:
    loop = Loop({HOT: 1_100.0}, processes=3)

    loop.run(900)

    assert loop.world.asked == [(HOT, 2)]


@pytest.mark.deep
@pytest.mark.parametrize("provisioned", [False, True])
def test_a_table_that_gives_little_bounds_the_count(*, provisioned: bool) -> None:
    loop = Loop({HOT: 16_000.0}, units=4_000, provisioned=provisioned)

    loop.run(500)

    assert loop.world.asked == [(HOT, 4)]
    assert loop.world.events[-1] is GrowthEvent.LIMIT
    assert "the table gives 4,000 write units a second now" in loop.world.reports[-1].reason


@pytest.mark.deep
def test_a_cold_table_that_is_not_described_stops_at_the_default_quota() -> None:
    loop = Loop({HOT: 16_000.0}, units=4_000, described=False)

    loop.run(640)

    assert max(target for _, target in loop.world.asked) == 64


@pytest.mark.deep
@pytest.mark.parametrize(("processes", "described"), [(1, True), (10, True), (10, False)])
def test_throttles_of_a_cold_table_that_are_spread_over_its_tenants_change_no_count(
    processes: int, *, described: bool
) -> None:
    loop = Loop(dict.fromkeys(TENANTS, 20.0), processes=processes, units=4_000, described=described)

    loop.run(120)

    assert loop.world.asked == []
    # Of few requests a process cannot tell that throttles are spread.
    assert set(loop.world.events) - {GrowthEvent.KEPT} == {GrowthEvent.LIMIT}
    limits = [each.reason for each in loop.world.reports if each.event is GrowthEvent.LIMIT]
    assert all("throttles are spread over all key ranges" in each for each in limits)


@pytest.mark.deep
def test_a_cold_table_with_sharded_tenants_changes_no_count() -> None:
    loop = Loop(dict.fromkeys(TENANTS[:50], 400.0), units=4_000, shards=Shards(16, max=1024))

    loop.run(120)

    assert (loop.world.asked, set(loop.world.events)) == ([], {GrowthEvent.LIMIT})


def test_neighbours_of_a_hot_key_are_left_alone_and_raise_no_alarm() -> None:
    loop = Loop({HOT: 6_000.0, **dict.fromkeys(TENANTS[:400], 5.0)}, processes=3)

    loop.run(400)

    assert {key for key, _ in loop.world.asked} == {HOT}
    assert loop.count(HOT) in {8, 16}
    assert GrowthEvent.LIMIT not in loop.world.events


def test_counts_never_shrink_by_demand() -> None:
    loop = Loop({HOT: 16_000.0}, processes=2)
    loop.run(300)
    loop.rates[HOT] = 500.0

    loop.run(200)

    assert all(earlier < later for (_, earlier), (_, later) in pairwise([(HOT, 1), *loop.world.asked]))


@pytest.mark.deep
def test_many_processes_do_not_all_ask_after_a_cooldown() -> None:
    loop = Loop({HOT: 16_000.0}, processes=50)

    loop.run(300)

    assert GrowthEvent.LOST not in loop.world.events
    # A read of the record is what each process costs; after a refusal it waits a minute and a random time.
    assert loop.world.reads <= 50 * 6
