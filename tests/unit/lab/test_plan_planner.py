"""Plans: shard counts with their reasons, listings, load times, cost, growth and advice."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.reads.first_round import first_limit
from dynashard_lab.plan.advice import advice
from dynashard_lab.plan.cost import Load, monthly_cost
from dynashard_lab.plan.listing import high_watermark_units, page_cost
from dynashard_lab.plan.loading import Target, load_time, rate, seconds_cold
from dynashard_lab.plan.planner import Plan, make_plan
from dynashard_lab.plan.prices import Prices
from dynashard_lab.plan.shards import Need, counts, shard_count
from dynashard_lab.plan.skew import even, one_hot, zipf
from dynashard_lab.plan.units import Consistency
from dynashard_lab.plan.workload import IndexLoad, Workload

pytestmark = pytest.mark.unit

PRICES = Prices("us-east-1", "2026-11-22", 0.00065, 0.00013, 0.625, 0.125, 0.25)
WORKLOAD = Workload(item_bytes=1024, skew=even(1), writes=8000, declared=0, name="ping.v1.Ping")


def planned(**changes: object) -> Plan:
    return make_plan(replace(WORKLOAD, **changes), PRICES)  # type: ignore[arg-type]


def said(plan: Plan) -> str:
    return "\n".join(advice(plan))


@pytest.mark.parametrize(
    ("placement", "count"),
    [("calculated", 16), ("random", 16), ("modulo", 12)],
)
def test_only_placements_that_need_it_get_a_power_of_two(placement: str, count: int) -> None:
    plan = planned(placement=placement)

    assert plan.shards.count == count
    assert plan.shards.by_writes == 12
    assert ("power of two" in plan.shards.reason) is (placement != "modulo")


@given(st.floats(0, 500_000), st.floats(0, 1_000_000), st.floats(0.1, 1), st.booleans())
def test_a_count_is_the_smallest_that_keeps_each_shard_below_the_limits(
    writes: float,
    reads: float,
    fill: float,
    powers: bool,  # noqa: FBT001 - hypothesis passes it by position
) -> None:
    found = shard_count(writes, lambda n: reads / n, fill=fill, powers=powers, rising=True)

    def fits(count: int) -> bool:
        return writes / count <= 1000 * fill and reads / count <= 3000 * fill

    smaller = [count for count in counts(powers=powers) if count < found.count]
    assert fits(found.count) is (found.need is not Need.UNREACHABLE)
    assert not any(map(fits, smaller))
    assert (found.need is Need.NONE) is (fits(1))


def test_a_partition_that_fits_needs_no_shards() -> None:
    plan = planned(writes=600)

    assert (plan.shards.count, plan.shards.need) == (1, Need.NONE)
    assert "No shards are needed" in said(plan)


def test_keys_that_do_not_rise_leave_the_splitting_to_dynamodb() -> None:
    plan = planned(rising=False)

    assert plan.shards.need is Need.OPTIONAL
    assert "DynamoDB splits a hot range by itself" in said(plan)
    assert "Shards(start=1, max=" in said(plan)


def test_keys_that_rise_need_shards_and_the_declaration_is_named() -> None:
    plan = planned()

    assert plan.shards.need is Need.REQUIRED
    assert "Declare shards=Shards(16, max=32) on ping.v1.Ping." in said(plan)
    assert "cannot help by itself" in said(plan)


def test_keys_that_carry_their_time_are_advised_epochs_with_what_these_leave() -> None:
    assert 'begin with their time: declare Shards(..., placement="epochs")' in said(planned(timed=True))
    assert "does not relieve updates and imports of old items" in said(planned(timed=True))
    assert 'If sort keys begin with their time, declare Shards(..., placement="epochs")' in said(planned())
    assert 'Shards(start=1, placement="epochs")' in said(planned(timed=True, writes=10))


@pytest.mark.parametrize("changes", [{"timed": False}, {"rising": False}, {"placement": "modulo"}])
def test_other_keys_are_not_advised_epochs(changes: dict[str, object]) -> None:
    assert "epochs" not in said(planned(**changes))


def test_what_is_placed_by_epochs_or_at_random_is_compared_with_epochs() -> None:
    assert 'Declare shards=Shards(16, max=32, placement="epochs")' in said(planned(placement="epochs", timed=True))
    assert "does not relieve updates" in said(planned(placement="epochs", timed=True))
    assert "copy them to a new entity" in said(planned(placement="random", timed=True))


@pytest.mark.parametrize(
    ("declared", "words"),
    [(16, "Keep Shards(16)"), (64, "Shards(64) on ping.v1.Ping is enough"), (4, "`dynashard reshard start`")],
)
def test_advice_compares_with_what_is_declared(declared: int, words: str) -> None:
    assert words in said(planned(declared=declared))


def test_modulo_counts_are_planned_for_the_end_because_they_never_change() -> None:
    changes = {"placement": "modulo", "growth": 10, "months": 12}

    assert 'Declare shards=Shards(36, placement="modulo")' in said(planned(**changes))
    assert "have to be copied" in said(planned(**changes, declared=12))
    assert "Keep Shards(36)" in said(planned(**changes, declared=36))


def test_a_read_replica_gets_no_count_of_its_own() -> None:
    replica = IndexLoad("replica_1", declared=1, replica=True)

    assert "replica_1" not in said(planned(indexes=(replica,)))


def test_entities_that_share_partitions_are_named() -> None:
    assert "shares its logical partitions with team.v1.Team" in said(planned(shares_with=("team.v1.Team",)))


def test_a_demand_above_all_counts_asks_for_another_partition_field() -> None:
    plan = planned(writes=2_000_000)

    assert plan.shards.need is Need.UNREACHABLE
    assert "Add a field to the partition template" in said(plan)


def test_ordered_listings_that_no_count_serves_are_unreachable() -> None:
    # Each page reads at least half a unit from each shard, at any count.
    plan = planned(writes=0, lists=10_000, order="ordered")

    assert plan.shards.need is Need.UNREACHABLE


def test_reads_can_decide_the_count() -> None:
    plan = planned(writes=100, reads=20_000)

    assert plan.shards.count == 8
    assert "reads need 8 shards" in plan.shards.reason
    assert plan.shards.need is Need.OPTIONAL
    assert "Only reads need shards, so DynamoDB splits" in said(plan)


def test_a_read_by_key_under_random_placement_costs_each_shard() -> None:
    calculated, random = planned(reads=100), planned(reads=100, placement="random")

    assert calculated.with_load.read_units == 50
    assert random.with_load.read_units == 16 * 50


def test_a_given_count_is_planned_with_and_the_smallest_is_named() -> None:
    plan = planned(shards=64)

    assert plan.shards.count == 64
    assert plan.shards.reason.startswith("given; 16 are enough")


def test_an_index_costs_its_writes_and_gets_its_own_count() -> None:
    index = IndexLoad("by_time", share=0.5, key_changes=0.5, assumed="all its entries are in one logical partition")

    plan = planned(indexes=(index,))

    assert plan.units.indexes == {"by_time": 0.75}
    assert plan.units.write_with_indexes == 1.75
    [found] = plan.indexes
    assert (found.count.count, found.throttles) == (16, True)
    assert "Give the index by_time shards=Shards(16)" in said(plan)
    assert "--index by_time=SHARE" in said(plan)


def test_an_index_that_stores_a_part_of_the_item_costs_that_part() -> None:
    index = IndexLoad("by_time", entry_bytes=1500)

    plan = planned(item_bytes=10_000, stored=1000, indexes=(index,))

    assert (plan.units.write, plan.units.indexes["by_time"]) == (10, 2)
    assert plan.with_shards.storage == pytest.approx(1000 * (10_100 + 1600) / 1024**3 * 0.25)


def test_transactions_double_the_writes_of_the_table_alone() -> None:
    plan = planned(transactional=0.5, indexes=(IndexLoad("by_time"),))

    assert (plan.units.write, plan.units.indexes["by_time"]) == (1.5, 1)


def test_sharding_lowers_the_chance_that_two_hot_keys_meet() -> None:
    plan = planned(skew=zipf(1000, 1), writes=12_000)

    assert plan.collisions.hot_without == 3
    assert (plan.collisions.hot_with, plan.collisions.chance_with) == (0, 0)
    assert 0 < plan.collisions.chance_without < 1


def test_writes_that_one_shard_cannot_serve_are_counted() -> None:
    assert planned().unserved == pytest.approx(7 / 8)
    assert planned(skew=one_hot(100, 0.1)).unserved == 0
    assert planned(writes=0, reads=1).unserved == 0


def test_hot_partitions_count_however_many_they_are() -> None:
    plan = planned(writes=10_000_000, skew=even(5000), item_bytes=1024)

    assert plan.unserved == pytest.approx(1 / 2)
    assert (plan.collisions.hot_without, plan.collisions.chance_without) == (5000, 1.0)


def test_a_new_table_is_prewarmed_and_a_large_one_needs_a_quota() -> None:
    text = said(planned(writes=50_000))

    assert "pre-warm it to 50,000 write" in text
    assert "let the traffic grow over 120 minutes" in text
    assert "Request a higher quota" in text


def test_the_setting_of_the_cheaper_mode_is_named() -> None:
    assert "Set table.mode to provisioned (docs/capacity.md)." in said(planned(mean=0.9))
    assert "table.mode" not in said(planned(mean=0.05))


def test_growth_names_the_months_in_which_the_count_changes() -> None:
    plan = planned(writes=500, growth=10, months=24)

    assert [(month.month, month.count) for month in plan.growth] == [(0, 1), (4, 2), (11, 4), (19, 8), (24, 8)]


def test_a_plan_is_json() -> None:
    document = planned(skew=zipf(10, 1), load=1000, growth=5).as_dict()

    assert document["workload"]["skew"]["hottest"] == pytest.approx(0.3414, abs=1e-4)
    assert document["shards"]["need"] == "required"


@pytest.mark.parametrize(
    ("order", "shards", "queries", "units"),
    [("round_robin", 16, 1, 6.5), ("shard", 16, 1, 6.5), ("ordered", 16, 16, 16), ("ordered", 1, 1, 6.5)],
)
def test_pages_cost_what_the_page_on_listing_measured(order: str, shards: int, queries: int, units: float) -> None:
    cost = page_cost(order, items=50, item_bytes=1024, shards=shards)

    assert (cost.queries, cost.read_units) == (queries, units)
    assert page_cost(order, items=50, item_bytes=1024, shards=shards, consistency=Consistency.STRONG).read_units == (
        2 * units
    )


@given(st.integers(1, 1000), st.integers(1, 400_000), st.sampled_from([1, 2, 4, 16, 64, 256, 1024]))
def test_an_ordered_page_reads_what_the_first_round_reads(items: int, size: int, shards: int) -> None:
    cost = page_cost("ordered", items=items, item_bytes=size, shards=shards)

    assert cost.shard_units == -(-first_limit(items, shards, size) * size // 4096) / 2
    assert cost.read_units <= high_watermark_units(items=items, item_bytes=size, shards=shards)


def test_a_load_is_as_slow_as_its_slowest_index() -> None:
    table, index = Target("the table", 1, 64), Target("by_email", 1, 1)

    assert load_time(10**6, [table]).bottleneck == "the table"
    assert load_time(10**6, [table, index]).bottleneck == "by_email"
    assert load_time(10**6, [table, index]).warm == 1000


def test_a_cold_load_speeds_up_as_the_table_doubles() -> None:
    # 1,024 shards fill every partition: 4,000 units/s for half an hour, then 8,000.
    assert seconds_cold(4000 * 1800, 1024) == pytest.approx(1800)
    assert seconds_cold(4000 * 1800 + 8000 * 60, 1024) == pytest.approx(1860)
    assert rate(1, 40_000) == 1000


def test_monthly_cost_is_units_times_prices() -> None:
    cost = monthly_cost(Load(700, 70, 0.5), 8 * 1024**3, PRICES, utilization=0.7)

    assert cost.on_demand == pytest.approx(0.5 * 2.628 * (700 * 0.625 + 70 * 0.125))
    assert cost.provisioned_flat == pytest.approx(730 * (1000 * 0.00065 + 100 * 0.00013))
    assert cost.provisioned_scaled == pytest.approx(cost.provisioned_flat / 2)
    assert cost.storage == 2


@given(st.floats(1, 1e6), st.floats(0, 1e6), st.floats(0.01, 1))
def test_on_demand_is_cheaper_exactly_below_the_break_even(writes: float, reads: float, mean: float) -> None:
    cost = monthly_cost(Load(writes, reads, mean), 0, PRICES, utilization=0.7)

    if abs(mean - cost.break_even) > 1e-9:
        assert (cost.on_demand < cost.provisioned_flat) is (mean < cost.break_even)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"item_bytes": 0}, "item_bytes is 0; it must be between 1 and 409,536"),
        ({"writes": -1}, "writes is -1; it must be between 0 and 100,000,000"),
        ({"writes": float("nan")}, "writes is nan"),
        ({"page": 1001}, "page is 1,001"),
        ({"fill": 0}, "fill is 0; it must be between 0.1 and 1"),
        ({"placement": "hash"}, "placement is 'hash'; it must be one of calculated, epochs, modulo, parts, random"),
        ({"shards": 12}, "shards is 12; calculated placement needs a power of two"),
        ({"shards": 2048}, "shards is 2,048; it must be between 1 and 1,024"),
        ({"writes": 0}, "nothing to plan"),
        ({"consistency": Consistency.TRANSACTIONAL, "lists": 1}, "listings cannot be transactional"),
    ],
)
def test_values_out_of_bounds_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        planned(**changes)
