"""What a process saw decides whether, when and how far a count grows; without it, counts double."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from dynashard import Key, Shards
from dynashard.entity import EntityDefinition
from dynashard.errors import ThrottledError, ThrottleReason
from dynashard.growth.demand import Demand
from dynashard.growth.terms import CountState, GrowthEvent
from tests.unit.serving.growth_policy_world import DAY, HOT, HOT_INDEX, START, TABLE, Loads, World, entity, throttle
from tests.unit.transport.test_transport_classification import classified

if TYPE_CHECKING:
    from dynashard.growth.policy import Growth

pytestmark = pytest.mark.unit

PARTITION = "thing.v1.Thing:abc"
THING = entity(Shards(1, max=256))
LOG = entity(Shards(start=1, max=256, placement="random"))
TIMED = entity(Shards(start=1, max=256, placement="epochs"), fields={"at": datetime}, key=Key("{tenant}", "{at}#{id}"))


class Process:
    """A process that counts its requests, with one shard in its logical partition unless the test says otherwise."""

    def __init__(self, world: World, thing: EntityDefinition[Any] = THING, **more: Any) -> None:
        self.world, self.thing = world, thing
        self.demand = Demand(lambda: world.now)
        self.growth: Growth = world.process(demand=self.demand, **{"waits": False, **more})

    def throttle(self, times: int = 1, error: ThrottledError = HOT, partition: str = PARTITION) -> None:
        for _ in range(times):
            self.growth.throttled(self.thing, partition, error)

    def admit(self, times: int, key: str = f"{PARTITION}:0", **more: str) -> None:
        item = {name: {"S": value} for name, value in {"PK": key, **more}.items()}
        for _ in range(times):
            self.demand.admitted("PutItem", {"TableName": "t", "Item": item}, {}, "t")

    def wait_and_throttle(self, seconds: float = 10.0) -> None:
        self.world.now += seconds
        self.throttle()


def named(*reasons: str, slot: str | None = None) -> ThrottledError:
    """Return a throttle that names several limits of the table, or of one index."""
    error = throttle()
    error.reasons = [ThrottleReason(each, f"{TABLE}/index/{slot}" if slot else TABLE) for each in reasons]
    return error


@pytest.mark.parametrize(("thing", "target"), [(THING, 16), (LOG, 32), (TIMED, 32)], ids=["moves", "random", "epochs"])
def test_one_request_jumps_to_the_demand_and_rather_beyond_it_if_nothing_moves(
    thing: EntityDefinition[Any], target: int
) -> None:
    world = World()
    process = Process(world, thing)

    process.throttle(100)
    process.admit(10)
    process.wait_and_throttle()

    assert (world.asked, world.creating) == ([(PARTITION, target)], [1.0])
    assert world.reports[0].reason.endswith("a key range is hot, 101 of 111 requests were throttled")


def test_demand_that_rises_further_is_decided_about_a_minute_after_a_request() -> None:
    world = World()
    process = Process(world)
    process.throttle(100)
    process.admit(10)
    process.wait_and_throttle()

    process.wait_and_throttle(60)
    process.throttle(1000)
    for shard in range(16):
        process.admit(10, f"{PARTITION}:{shard}")
    process.wait_and_throttle()

    assert world.asked == [(PARTITION, 16), (PARTITION, 64)]


def test_the_ceiling_of_the_declaration_bounds_a_jump() -> None:
    world = World()
    process = Process(world, entity(Shards(1, max=8)))

    process.throttle(100)
    process.admit(10)
    process.wait_and_throttle()

    assert world.asked == [(PARTITION, 8)]


def test_sixteen_executed_requests_are_decided_about_after_half_of_the_longest_wait() -> None:
    world = World()
    process = Process(world, random=0.0)
    process.throttle(100)
    process.admit(16)

    process.wait_and_throttle(4.9)
    early = list(world.asked)
    process.wait_and_throttle(1)

    assert (early, [key for key, _ in world.asked]) == ([], [PARTITION])


def test_a_clock_that_was_set_back_does_not_delay_a_decision() -> None:
    world = World()
    process = Process(world, random=0.0)
    process.throttle()

    process.wait_and_throttle(-100)
    process.wait_and_throttle(2)

    assert world.asked == [(PARTITION, 2)]


def test_a_cooldown_of_less_than_a_minute_is_all_that_is_waited_for() -> None:
    world = World(counts={PARTITION: CountState(1, START - 10, busy=False)})
    process = Process(world, cooldown_seconds=25, random=0.0)
    process.throttle(100)
    process.admit(16)

    process.wait_and_throttle()
    within = (world.reads, list(world.asked))
    process.wait_and_throttle(25)
    process.throttle(100)
    process.admit(16)
    process.wait_and_throttle(2)

    assert (within, len(world.asked)) == ((1, []), 1)


def test_few_requests_are_waited_for_but_not_for_long() -> None:
    world = World()
    process = Process(world)

    process.throttle()
    process.wait_and_throttle(6)
    early = (world.reads, list(world.asked))
    process.wait_and_throttle(6)

    assert (early, world.asked) == ((0, []), [(PARTITION, 2)])


def test_a_single_throttle_changes_nothing() -> None:
    world = World()
    process = Process(world)

    process.throttle()
    process.admit(1000)
    world.now += 30

    assert (world.asked, world.reads) == ([], 0)


def test_a_count_that_takes_its_demand_is_looked_at_again_after_a_minute() -> None:
    world = World()
    process = Process(world)

    process.throttle()
    process.admit(1000)
    process.wait_and_throttle()
    enough = (world.reads, list(world.asked), world.events)
    process.wait_and_throttle(30)
    process.wait_and_throttle(31)
    process.throttle(200)
    process.wait_and_throttle(8)

    assert enough == (1, [], [GrowthEvent.KEPT])
    assert world.reports[0].reason == (
        f"{PARTITION} was throttled, but its count of 1 takes what is asked: 2 of 1,002 requests were throttled"
    )
    assert (world.reads, len(world.asked)) == (2, 1)


@pytest.mark.parametrize(
    ("since", "throttled", "asked"),
    [
        (59, 1000, []),
        (60, 1000, [8]),
        # 417 of 200 requests, less what chance may have done, are twice as many.
        (60, 217, [8]),
        (60, 216, []),
        (60, 30, []),
        (290, 30, []),
        (300, 30, [8]),
    ],
    ids=["not visible yet", "clearly more", "twice as many", "fewer", "a little more", "still", "after the cooldown"],
)
def test_a_cooldown_is_waited_for_unless_demand_is_clearly_larger(
    since: float, throttled: int, asked: list[int]
) -> None:
    world = World(counts={PARTITION: CountState(4, START - since + 10, busy=False)})
    process = Process(world)

    process.throttle(throttled - 1)
    for shard in range(4):
        process.admit(50, f"{PARTITION}:{shard}")
    process.wait_and_throttle()

    assert [min(8, target) for _, target in world.asked] == asked


def test_shards_that_nobody_asked_take_a_part_of_the_demand_too() -> None:
    world = World(counts={PARTITION: CountState(4, START - 60, busy=False)})
    process = Process(world)

    process.throttle(99)
    process.admit(50)
    process.wait_and_throttle()

    assert (world.reads, world.asked) == (1, [])


def test_a_neighbour_of_a_hot_key_is_looked_at_again_after_a_minute() -> None:
    world = World()
    process = Process(world)

    process.throttle()
    process.throttle(99, partition="thing.v1.Thing:hot")
    process.admit(100, "thing.v1.Thing:hot:0")
    process.wait_and_throttle()
    as_a_neighbour = (list(world.asked), [each.reason for each in world.reports])
    process.wait_and_throttle(60)
    process.throttle(200)
    process.wait_and_throttle()

    assert as_a_neighbour == (
        [],
        [f"{PARTITION} was throttled, but has 2 of 201 requests: too few to be what is hot"],
    )
    assert [key for key, _ in world.asked] == [PARTITION]


def test_throttles_that_are_spread_over_an_index_are_reported_with_it_beside_other_limits() -> None:
    world = World()
    process = Process(world)
    hot = named("IndexWriteKeyRangeThroughputExceeded", slot="GSI1")

    for error in (HOT, hot):
        process.throttle(error=error)
    process.admit(1000, "thing.v1.Thing:other:0", GSI1PK="other.v1.Other:a:0")
    world.now += 10
    for error in (HOT, hot, classified("account_limit_without_reasons")):
        process.throttle(error=error)

    assert [(each.event, each.index) for each in world.reports] == [
        (GrowthEvent.LIMIT, None),
        (GrowthEvent.LIMIT, "GSI1"),
        (GrowthEvent.LIMIT, None),
    ]


def test_callers_that_wait_for_their_retries_still_show_that_all_shards_are_too_few() -> None:
    world = World(counts={PARTITION: CountState(2, START - DAY, busy=False)})
    process = Process(world)
    process.throttle(2)
    for shard in range(2):
        process.admit(1000, f"{PARTITION}:{shard}")
        request = {"TableName": "t", "Item": {"PK": {"S": f"{PARTITION}:{shard}"}}}
        process.demand.refused("PutItem", request, HOT, "t")
    process.wait_and_throttle()

    assert world.asked == [(PARTITION, 4)]


def test_a_resize_in_progress_is_looked_at_again_after_a_minute() -> None:
    world = World(counts={PARTITION: CountState(1, START - DAY, busy=True)})
    process = Process(world)
    process.throttle(40)
    process.wait_and_throttle()

    world.counts[PARTITION] = CountState(2, START - DAY, busy=False)
    process.wait_and_throttle(61)
    process.throttle(40)
    process.wait_and_throttle()

    assert [key for key, _ in world.asked] == [PARTITION]
    assert world.reads == 2


def test_a_count_that_stays_is_reported_once_in_a_cooldown_although_it_is_looked_at_each_minute() -> None:
    world = World(counts={PARTITION: CountState(1, START - DAY, busy=True)})
    process = Process(world)

    for _ in range(4):
        process.throttle(40)
        process.wait_and_throttle()
        world.now += 60

    assert (world.reads, world.events) == (4, [GrowthEvent.KEPT])


def test_the_ceiling_and_the_table_bound_a_jump() -> None:
    world, loads = World(), Loads(units=8_000)
    process = Process(world, load=loads)

    process.throttle(10_000)
    process.admit(100)
    process.wait_and_throttle()

    assert (world.asked, loads.described) == ([(PARTITION, 8)], [(None, True)])


def test_a_table_whose_shards_can_use_all_of_it_is_at_its_limit() -> None:
    world = World(counts={PARTITION: CountState(8, START - DAY, busy=False)})
    process = Process(world, load=Loads(units=8_000))

    process.throttle(100)
    process.wait_and_throttle()

    assert (world.asked, world.events) == ([], [GrowthEvent.LIMIT])
    assert world.reports[0].reason == (
        f"{PARTITION} is hot, but a count of 8 can use all that there is: "
        "the table gives 8,000 write units a second now; pre-warm it, or raise its maximum"
    )


def test_the_table_is_described_once_a_minute() -> None:
    world, loads = World(), Loads(units=40_000)
    process = Process(world, load=loads)

    for tenant in range(3):
        process.throttle(40, partition=f"thing.v1.Thing:{tenant}")
    for tenant in range(3):
        world.now += 10 if not tenant else 0
        process.throttle(partition=f"thing.v1.Thing:{tenant}")

    process.throttle(error=throttle("TableReadKeyRangeThroughputExceeded"), partition="thing.v1.Thing:3")
    process.wait_and_throttle()
    process.throttle(error=throttle("TableReadKeyRangeThroughputExceeded"), partition="thing.v1.Thing:3")

    assert (len(world.asked), loads.described) == (4, [(None, True), (None, False)])
    assert world.creating == [1.0, 1.0, 1.0, 0.0]


def test_a_hot_index_asks_for_what_the_index_gives() -> None:
    world, loads = World(), Loads(units=40_000)
    process = Process(world, load=loads)

    process.throttle(40, HOT_INDEX)
    world.now += 10
    process.throttle(1, HOT_INDEX)

    assert (world.asked, loads.described) == ([("thing.v1.Thing|GSI1", 8)], [("GSI1", True)])


def test_a_dry_run_reports_the_jump_once_in_a_cooldown() -> None:
    world = World()
    process = Process(world, mode="dry_run")

    process.throttle(100)
    process.admit(10)
    process.wait_and_throttle()
    process.wait_and_throttle(70)
    process.throttle(100)
    process.wait_and_throttle(10)

    assert (world.asked, world.events, world.reports[0].target) == ([], [GrowthEvent.WOULD_ASK], 16)


def test_a_process_that_waits_itself_decides_after_its_only_throttle() -> None:
    world = World()
    process = Process(world, waits=True)

    process.throttle()

    assert (world.asked, world.slept) == ([(PARTITION, 2)], [5.5])


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (named("TableWriteKeyRangeThroughputExceeded", "TableWriteProvisionedThroughputExceeded"), []),
        (named("TableWriteKeyRangeThroughputExceeded", "TableWriteMaxOnDemandThroughputExceeded"), []),
        (named("IndexWriteKeyRangeThroughputExceeded", "IndexWriteAccountLimitExceeded", slot="GSI1"), []),
        (named("TableWriteKeyRangeThroughputExceeded", "TableReadKeyRangeThroughputExceeded"), [(PARTITION, 2)]),
    ],
    ids=["provisioned", "maximum", "index", "reads too"],
)
def test_a_limit_of_the_same_table_or_index_comes_before_its_key_ranges(
    error: ThrottledError, asked: list[tuple[str, int]]
) -> None:
    world = World()

    world.process().throttled(THING, PARTITION, error)

    assert (world.asked, GrowthEvent.LIMIT in world.events) == (asked, not asked)


def test_a_throttled_provisioned_table_is_reported_with_its_remedy_and_changes_no_count() -> None:
    world = World()
    process = Process(world, load=Loads(units=1_000))
    error = throttle("TableWriteProvisionedThroughputExceeded")

    process.throttle(1000, error)
    world.now += 60
    process.throttle(1000, error)

    assert (world.asked, world.reads, world.events) == ([], 0, [GrowthEvent.LIMIT])
    assert error.reasons[0].remedy in world.reports[0].reason
