"""Token buckets against their closed form: what is admitted in `t` seconds is the burst and `t` times the rate."""

import pytest

from dynashard_lab.simulate.bucket import Bucket

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("seconds", [1.0, 60.0, 300.0])
@pytest.mark.parametrize("units", [1.0, 4.0])
def test_admitted_requests_are_the_burst_and_the_rate(seconds: float, units: float) -> None:
    bucket = Bucket(100.0, seconds)
    admitted = 0

    for tick in range(1, 8001):
        fitting = bucket.room(tick * 0.05, units, 20)
        bucket.take(fitting * units)
        admitted += fitting

    # A load above the rate: all that was saved, and all that has accrued in 400 seconds but for the first tick.
    assert admitted * units == pytest.approx(min(100 * seconds + 100 * 400, 8000 * 20 * units), abs=10)


def test_one_by_one_and_at_once_admit_the_same() -> None:
    single, bulk = Bucket(10.0, 3.0), Bucket(10.0, 3.0)
    admitted = [0, 0]

    for tick in range(1, 50):
        for _ in range(15):
            if single.room(tick, 1.0):
                single.take(1.0)
                admitted[0] += 1
        fitting = bulk.room(tick, 1.0, 15)
        bulk.take(fitting)
        admitted[1] += fitting

    assert admitted[0] == admitted[1] > 0


def test_a_request_larger_than_the_bucket_is_admitted_when_it_is_full_and_paid_afterwards() -> None:
    bucket = Bucket(5.0, 2.0)

    first = bucket.room(0.0, 25.0)
    bucket.take(25.0)

    assert first == 1
    assert bucket.level == -15.0
    assert [bucket.room(at, 25.0) for at in (2.0, 4.9, 5.0)] == [0, 0, 1]


def test_a_rate_changes_while_the_bucket_is_below_zero() -> None:
    bucket = Bucket(5.0, 2.0)
    bucket.take(25.0)

    bucket.set_rate(1.0, 10.0)

    assert (bucket.level, bucket.room(1.0, 0.0, 3), bucket.room(3.0, 1.0, 30)) == (-10.0, 3, 10)


def test_a_lower_rate_keeps_no_more_than_it_can_hold() -> None:
    bucket = Bucket(100.0, 10.0)

    bucket.set_rate(1.0, 10.0)

    assert (bucket.capacity, bucket.level) == (100.0, 100.0)
