"""The share of requests that is admitted shows how many shards a demand needs."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dynashard import Index, Key, Shards, definition
from dynashard.growth.demand import Demand, Place
from dynashard.growth.evidence import Evidence, creating_share, evidence_of
from dynashard.growth.sizing import enough, target_count
from dynashard.growth.supply import Supply
from dynashard.resharding.scope import Scope
from tests.declaring import declare
from tests.depth import examples
from tests.unit.serving.growth_policy_world import START, throttle

pytestmark = pytest.mark.unit

WRITES, READS = Place(None, writing=True), Place(None, writing=False)


def seen(*shards: int, throttled: int, refusing: int = 0, others: int = 0, most: int | None = None) -> Evidence:
    every = sum(shards) + throttled + others
    return Evidence(shards, refusing, throttled, every, throttled if most is None else most)


@pytest.mark.parametrize(
    ("evidence", "target"),
    [
        (seen(1000, throttled=15_000), 32),
        (seen(1000, throttled=10_000), 16),
        (seen(1000, throttled=5_000), 8),
        (seen(1000, throttled=20), 2),
        (seen(10, throttled=65), 8),
        (seen(10, throttled=100), 16),
        (seen(0, throttled=2), 2),
        (seen(0, throttled=1000), 2),
        (seen(1, throttled=1000), 4),
        (seen(2, throttled=1000), 8),
        (seen(3, throttled=1000), 8),
        (seen(*[1000] * 4, throttled=12_000), 32),
        (seen(*[1000] * 4, throttled=100_000), 64),
    ],
    ids=str,
)
def test_a_target_leaves_a_quarter_of_each_shard_free_and_trusts_few_requests_little(
    evidence: Evidence, target: int
) -> None:
    assert target_count(evidence, ceiling=64) == target


@pytest.mark.parametrize(
    ("evidence", "target"),
    [
        (seen(1000, throttled=15_000), 32),
        # What processes with a part of the traffic see of 16 times what a shard takes.
        (seen(10, throttled=150), 32),
        (seen(26, throttled=250), 32),
        (seen(6, throttled=94), 32),
        (seen(1000, throttled=4_000), 8),
        (seen(1000, throttled=20), 2),
        (seen(0, throttled=1000), 2),
        (seen(1, throttled=1000), 16),
        (seen(1, throttled=2), 4),
        (seen(*[1000] * 4, throttled=12_000), 32),
    ],
    ids=str,
)
def test_a_target_that_moves_nothing_is_large_enough_even_by_few_requests(evidence: Evidence, target: int) -> None:
    assert target_count(evidence, ceiling=64, moves=False) == target


@pytest.mark.parametrize(
    ("evidence", "is_enough"),
    [
        (seen(0, throttled=1), False),
        (seen(1000, throttled=100), False),
        (seen(1000, throttled=2, refusing=1), False),
        (seen(1000, throttled=2, refusing=0), True),
        (seen(*[1000] * 8, throttled=20, refusing=5), True),
        (seen(*[1000] * 8, throttled=20, refusing=6), False),
        (seen(1000, 1000, throttled=200), False),
        (seen(1000, 1000, throttled=50), True),
        (seen(1000, 1000, throttled=99), True),
        (seen(1000, 1000, throttled=100), False),
        # Two of eight shards share a physical partition.
        (seen(*[1000] * 6, 500, 500, throttled=1000), True),
        (seen(*[1000] * 8, throttled=1000), False),
    ],
    ids=str,
)
def test_a_count_is_enough_if_most_shards_take_what_is_asked_of_them(evidence: Evidence, *, is_enough: bool) -> None:
    assert enough(evidence) is is_enough


@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(
    st.integers(0, 6).flatmap(lambda power: st.lists(st.integers(0, 5000), min_size=2**power, max_size=2**power)),
    st.integers(1, 100_000),
    st.integers(7, 10),
)
def test_a_target_is_a_power_of_two_from_twice_the_count_to_the_ceiling(
    shards: list[int], throttled: int, power: int
) -> None:
    count, ceiling = len(shards), 2**power

    target = target_count(seen(*shards, throttled=throttled), ceiling=ceiling)

    assert target.bit_count() == 1
    assert 2 * count <= target <= ceiling
    assert target <= target_count(seen(*shards, throttled=2 * throttled), ceiling=ceiling)
    assert target <= target_count(seen(*shards, throttled=throttled), ceiling=ceiling, moves=False) <= ceiling


@hypothesis_settings(max_examples=examples(100), deadline=None)
@given(st.integers(200, 5000), st.floats(1.1, 60.0), st.integers(0, 4))
def test_a_target_is_at_most_twice_the_power_of_two_that_a_demand_needs(full: int, excess: float, power: int) -> None:
    count = 2**power
    demand = round(full * count * excess)

    target = target_count(seen(*[full] * count, throttled=demand - full * count), ceiling=1024)

    assert target >= demand / full * 0.9
    assert target < 4 * demand / full


@pytest.mark.parametrize(
    ("units", "place", "most"),
    [
        (None, WRITES, 64),
        (None, READS, 16),
        (40_000.0, WRITES, 64),
        (32_000.0, WRITES, 32),
        (4_000.0, WRITES, 4),
        (12_000.0, READS, 4),
        (10.0, WRITES, 1),
        (1_500.0, WRITES, 2),
        (400_000.0, WRITES, 512),
    ],
)
def test_what_the_table_gives_bounds_the_shards(units: float | None, place: Place, most: int) -> None:
    assert Supply(units, place).most_shards == most


@pytest.mark.parametrize(
    ("evidence", "bystander", "spread"),
    [
        (seen(1000, throttled=5000), False, False),
        (seen(0, throttled=1), False, False),
        (seen(0, throttled=2), False, False),
        (seen(100, throttled=10, others=90_000, most=50_000), True, False),
        (seen(20, throttled=80, others=90_000, most=100), True, True),
        (seen(0, throttled=2, others=60, most=2), True, False),
        (seen(0, throttled=3, others=300, most=3), True, True),
        # From an 80th of all requests on, less the root of their number, a scope may be what is hot.
        (seen(100, throttled=0, others=7_100, most=90), False, False),
        (seen(100, throttled=0, others=7_101, most=89), True, True),
        # A clock that is set back while a throttle is judged forgets that one too.
        (seen(0, throttled=0), False, True),
    ],
    ids=str,
)
def test_a_scope_with_a_small_part_of_the_requests_is_not_what_is_hot(
    evidence: Evidence, *, bystander: bool, spread: bool
) -> None:
    supply = Supply(40_000.0, WRITES)

    assert (supply.bystander(evidence), supply.spread(evidence)) == (bystander, spread)


@pytest.mark.parametrize(("others", "bystander"), [(620, False), (621, True)])
def test_reads_are_compared_with_what_a_shard_reads(others: int, *, bystander: bool) -> None:
    assert Supply(12_000.0, READS).bystander(seen(100, throttled=0, others=others)) is bystander


@pytest.mark.parametrize(
    ("executed", "created", "share"), [(100, 25, 0.25), (100, 100, 1.0), (100, 130, 1.0), (0, 0, 1.0)]
)
def test_the_share_of_creates_is_that_of_what_was_executed(executed: int, created: int, share: float) -> None:
    evidence = Evidence((executed,), 0, 1, executed + 1, 1, created=created)

    assert creating_share(evidence, WRITES) == share
    assert creating_share(None, WRITES) == 1.0
    assert creating_share(evidence, READS) == 0.0


@pytest.mark.parametrize(("executed", "conclusive"), [(15, False), (16, True)])
def test_sixteen_executed_requests_are_enough_to_decide(executed: int, *, conclusive: bool) -> None:
    assert seen(executed - 6, 6, throttled=1000).conclusive is conclusive


@pytest.mark.parametrize(("retried", "is_enough"), [(9, True), (10, False)])
def test_a_tenth_of_the_requests_executed_after_throttles_shows_that_shards_are_too_few(
    retried: int, *, is_enough: bool
) -> None:
    assert enough(Evidence((100,), 1, 0, 100, retried, retried)) is is_enough


def test_the_remedy_says_what_there_is() -> None:
    assert Supply(4_000.0, Place("GSI1", writing=False)).remedy.startswith("index GSI1 gives 4,000 read units a second")
    assert Supply(None, WRITES).remedy == "the table is assumed to give 40,000 write units a second"


def counted(*keys: str, place: Place = WRITES) -> Demand:
    demand = Demand(lambda: START)
    demand.throttled(place, "thing.v1.Thing:abc")
    name = f"{place.slot}PK" if place.slot else "PK"
    for key in keys:
        demand.admitted("PutItem", {"TableName": "t", "Item": {name: {"S": key}}}, {}, "t")
    return demand


BY_ID = Index("GSI1", "by_id", "{tenant}", "{id}", prefix="ids", shards=Shards(2))
THING = definition(declare(shards=Shards(2), indexes=[BY_ID]))
BARE = definition(declare(key=Key("{tenant}", "{id}", prefix="", separator="_"), shards=Shards(2)))


def test_the_evidence_of_a_partition_is_that_of_its_shards() -> None:
    scope = Scope(THING, "thing.v1.Thing:abc")
    ours, others = ["abc:0", "abc:0", "abc:1"], ["b:0", *["abc:longer:0"] * 4]
    demand = counted(*(f"thing.v1.Thing:{key}" for key in [*ours, *others]))

    assert evidence_of(demand, scope, WRITES, 4) == Evidence((2, 1, 0, 0), 0, 1, 9, 1, created=3)
    assert evidence_of(demand, scope, WRITES) == Evidence((2, 1), 0, 1, 9, 1, created=3)
    assert evidence_of(counted(), scope, WRITES) == Evidence((0,), 0, 1, 1, 1)
    assert evidence_of(demand, scope, READS, 2) == Evidence((0, 0), 0, 0, 0, 0)


def test_the_evidence_of_an_index_is_that_of_its_hottest_partition() -> None:
    place = Place("GSI1", writing=True)
    index = THING.indexes["by_id"]
    keys = [f"{index.prefix}{index.separator}{key[0]}:{key[1]}" for key in ("a0", "b0", "b1", "b1")]
    demand = counted(*keys, *["another.v1.Thing:c:0"] * 4, place=place)

    evidence = evidence_of(demand, Scope(THING, index=index), place, 4)

    assert (evidence.shards, evidence.all_requests) == ((1, 2, 0, 0), 9)
    assert evidence_of(demand, Scope(THING, index=index), place, 1).shards == (1,)
    assert evidence_of(counted(place=place), Scope(THING, index=index), place, 2).shards == (0, 0)


def test_without_an_executed_request_the_excess_is_infinite_but_nothing_is_proven() -> None:
    evidence = seen(0, 0, throttled=100)

    assert (evidence.excess, evidence.proven_excess) == (inf, 0.0)


def test_shards_that_executed_nothing_are_seen_by_their_throttles_and_keys_may_have_no_prefix() -> None:
    demand = counted("abc_0", "abc_0")
    demand.refused("PutItem", {"TableName": "t", "Item": {"PK": {"S": "abc_1"}}}, throttle(), "t")

    evidence = evidence_of(demand, Scope(BARE, "abc"), WRITES)

    assert (evidence.shards, evidence.refusing) == ((2, 0), 1)


@pytest.mark.parametrize(("of_b", "most"), [(2, 3), (4, 4)])
def test_the_most_throttled_scope_is_that_with_most_throttles_that_lasted_or_were_retried(of_b: int, most: int) -> None:
    demand = counted()
    for stored, key, times in (("a:0", "thing.v1.Thing:abc", 2), ("b:0", "b", of_b)):
        for _ in range(times):
            demand.retried(WRITES, stored, key)

    assert evidence_of(demand, Scope(THING, "thing.v1.Thing:abc"), WRITES).most_throttled == most


def test_a_window_without_throttles_is_evidence_too() -> None:
    now = [START]
    demand = Demand(lambda: now[0])
    demand.throttled(READS, "thing.v1.Thing:abc")
    demand.admitted("PutItem", {"TableName": "t", "Item": {"PK": {"S": "thing.v1.Thing:abc:0"}}}, {}, "t")

    assert evidence_of(demand, Scope(THING, "thing.v1.Thing:abc"), WRITES).most_throttled == 0
