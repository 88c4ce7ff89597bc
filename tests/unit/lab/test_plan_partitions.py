"""Physical partitions, collisions of hot keys, and skew."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_lab.plan.partitions import (
    chance_shared,
    doublings,
    expected_occupied,
    expected_served,
    on_demand_partitions,
    provisioned_partitions,
    ramp_seconds,
)
from dynashard_lab.plan.skew import KEPT, by_counts, even, harmonic, measured, one_hot, zipf

pytestmark = pytest.mark.unit

GB = 1024**3


@pytest.mark.parametrize(
    ("reads", "writes", "size", "provisioned", "on_demand"),
    [
        (0, 0, 0, 1, 4),
        (3000, 1000, 0, 2, 4),
        (12_000, 4000, 0, 8, 4),
        (12_001, 4000, 0, 9, 5),
        (0, 40_000, 0, 40, 40),
        (0, 0, 55 * GB, 6, 6),
        (0.1 + 0.2, 999.9999, 0, 2, 4),
    ],
)
def test_partitions_follow_units_and_bytes(
    reads: float, writes: float, size: int, provisioned: int, on_demand: int
) -> None:
    assert provisioned_partitions(reads, writes, size) == provisioned
    assert on_demand_partitions(reads, writes, size) == on_demand


@pytest.mark.parametrize(("target", "steps"), [(0, 0), (4000, 0), (4001, 1), (8000, 1), (8001, 2), (40_000, 4)])
def test_an_on_demand_table_doubles_every_half_hour(target: float, steps: int) -> None:
    assert doublings(target, 4000) == steps
    assert ramp_seconds(target, 4000) == steps * 1800


@pytest.mark.parametrize(("keys", "partitions"), [(0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (3, 5)])
def test_collisions_agree_with_counting_every_placement(keys: int, partitions: int) -> None:
    placements = list(product(range(partitions), repeat=keys))
    shared = sum(len(set(each)) < keys for each in placements) / len(placements)
    occupied = sum(len(set(each)) for each in placements) / len(placements)
    served = sum(min(n * 400.0, 1000) for each in placements for n in Counter(each).values()) / len(placements)

    assert chance_shared(keys, partitions) == pytest.approx(shared)
    assert expected_occupied(keys, partitions) == pytest.approx(occupied)
    assert expected_served(keys, partitions, 400) == pytest.approx(served)


def test_23_people_share_a_birthday_more_often_than_not() -> None:
    assert chance_shared(23, 365) == pytest.approx(0.5073, abs=1e-4)


@given(st.integers(1, 1024), st.integers(1, 500), st.floats(1, 5000))
def test_no_more_is_served_than_asked_for_or_than_partitions_give(keys: int, partitions: int, each: float) -> None:
    served = expected_served(keys, partitions, each)

    assert 0 < served <= min(keys * each, partitions * 1000) * (1 + 1e-9)


@given(st.integers(1, 100_000), st.floats(0, 3))
def test_shares_of_zipf_fall_and_add_up_to_at_most_one(partitions: int, exponent: float) -> None:
    skew = zipf(partitions, exponent)

    assert list(skew.shares) == sorted(skew.shares, reverse=True)
    assert sum(skew.shares) == pytest.approx(1) if partitions <= KEPT else sum(skew.shares) <= 1 + 1e-9


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_long_harmonic_sums_are_exact_enough(exponent: float) -> None:
    assert harmonic(300_000, exponent) == pytest.approx(sum(k**-exponent for k in range(1, 300_001)), rel=1e-9)


def test_zipf_with_exponent_0_is_even() -> None:
    assert zipf(50, 0).shares == pytest.approx(even(50).shares)


def test_measured_shares_are_those_of_the_counts() -> None:
    skew = measured({"a": 1, "b": 6, "c": 3}, "a file")

    assert skew.shares == pytest.approx((0.6, 0.3, 0.1))
    assert skew.above(0.2) == 2


def test_shares_follow_the_live_shard_counts() -> None:
    assert by_counts([64, 16], 4, 7).shares == pytest.approx((0.64, 0.16, *[0.04] * 5))
    assert by_counts([], 0, 4).shares == (0.25,) * 4
    assert by_counts([2], 1, 10_000).hottest == pytest.approx(2 / 10_001)
    with pytest.raises(ValueError, match="partitions is 1, but 2 of them"):
        by_counts([64, 16], 4, 1)


@pytest.mark.parametrize(("partitions", "share"), [(1, 0.5), (10, 0.05), (10, 1.1), (10, float("nan"))])
def test_an_impossible_share_of_the_hottest_is_refused(partitions: int, share: float) -> None:
    with pytest.raises(ValueError, match=f"of {partitions} partitions it is from"):
        one_hot(partitions, share)
