"""How capacity changes by itself: on-demand ceilings, schedules and target tracking."""

import pytest

from dynashard_lab.plan.partitions import on_demand_partitions, provisioned_partitions
from dynashard_lab.simulate.capacity import DAY, OnDemand, Provisioned, Tracking, partitions_for
from dynashard_lab.simulate.settings import Settings

pytestmark = pytest.mark.unit

SETTINGS = Settings()
MINUTE = 60.0


def reviewed(capacity: OnDemand | Provisioned, rate: float, minutes: int, *, begin: float = 0.0) -> list[float]:
    units = []
    for minute in range(1, minutes + 1):
        capacity.review(begin + minute * MINUTE, rate)
        units.append(capacity.units)
    return units


def test_an_on_demand_table_gets_twice_its_peak_after_half_an_hour() -> None:
    units = reviewed(OnDemand(4_000, 40_000, SETTINGS), 3_900, 40)

    assert units[:30] == [4_000] * 30
    assert units[30:] == [7_800] * 10


def test_a_peak_never_lowers_the_ceiling_and_the_quota_bounds_it() -> None:
    capacity = OnDemand(30_000, 40_000, SETTINGS)

    assert reviewed(capacity, 100, 40) == [30_000] * 40
    assert reviewed(capacity, 25_000, 40, begin=3_000)[-1] == 40_000
    assert capacity.limit == "AccountLimit"
    assert capacity.ceiling == 50_000


def test_a_maximum_of_its_own_is_the_limit_that_is_named() -> None:
    capacity = OnDemand(4_000, 40_000, SETTINGS, maximum=500)

    assert (capacity.units, capacity.limit) == (500, "MaxOnDemandThroughput")


def test_a_schedule_repeats_every_day() -> None:
    capacity = Provisioned(1, SETTINGS, schedule=[(3_600, 100), (7_200, 500)])
    at_start = capacity.units
    found = []

    for at in (3_600.0, 7_200.0, DAY, DAY + 3_600, DAY + 7_200):
        capacity.review(at, 0)
        found.append(capacity.units)

    assert at_start == 500
    assert found == [100, 500, 500, 100, 500]


def test_target_tracking_raises_after_two_minutes_and_lowers_after_fifteen() -> None:
    capacity = Provisioned(1_000, SETTINGS, tracking=Tracking(0.7, 100, 5_000))

    raised = reviewed(capacity, 1_400, 5)
    lowered = reviewed(capacity, 140, 20, begin=5 * MINUTE)

    # A change takes two minutes more to take effect.
    assert raised == [1_000, 1_000, 1_000, 2_000, 2_000]
    assert lowered[:16] == [2_000] * 16
    assert lowered[16] == 200


def test_target_tracking_stays_within_its_bounds() -> None:
    capacity = Provisioned(1_000, SETTINGS, tracking=Tracking(0.7, 800, 1_500))

    assert reviewed(capacity, 9_000, 5)[-1] == 1_500
    assert reviewed(capacity, 1, 30, begin=300)[-1] == 800


def test_after_four_decreases_a_day_the_next_waits_an_hour() -> None:
    capacity = Provisioned(1, SETTINGS, schedule=[(at * MINUTE, 1_000 - at) for at in range(1, 90)])

    units = reviewed(capacity, 0, 70)

    # The first change raises what the schedule had the day before.
    assert units[:6] == [999, 998, 997, 996, 995, 995]
    assert units[63:66] == [995, 935, 935]


@pytest.mark.parametrize(
    ("writes", "reads", "provisioned", "count"),
    [(1_000, 3_000, True, 2), (500, 1_500, True, 1), (1_000, 2_500, True, 2), (4_000, 12_000, False, 4)],
)
def test_partitions_follow_from_units(writes: float, reads: float, *, provisioned: bool, count: int) -> None:
    assert partitions_for(writes, reads, SETTINGS, provisioned=provisioned) == count
    assert (provisioned_partitions if provisioned else on_demand_partitions)(reads, writes) == count
