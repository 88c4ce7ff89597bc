"""The pace of a task: within its budget, and slower after throttles."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import KeyRangeThrottledError, TableThrottledError, ThrottledError
from dynashard.resharding.pace import Pace, Speed, largest_page
from dynashard.resharding.rates import Rate
from dynashard.runtime import Runtime

pytestmark = pytest.mark.unit

HOT = KeyRangeThrottledError("hot", operation="TransactWriteItems", aws_code="ThrottlingException")
UNKNOWN = ThrottledError("no reason", operation="TransactWriteItems", aws_code="TransactionCanceledException")
FULL = TableThrottledError("full", operation="TransactWriteItems", aws_code="ThrottlingException")


@dataclass
class Time:
    now: float = 1000.0
    table: Speed = field(default_factory=Speed)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def pace(self, rate: float = 12_800.0, width: int = 16, **more: Any) -> Pace:
        runtime = Runtime(self, self.sleep, lambda: 0.5)
        return Pace(Rate(rate, 600.0, 4.0), width=width, table=self.table, runtime=runtime, **more)


@given(
    rate=st.floats(1, 10_000),
    waves=st.lists(st.tuples(st.floats(0, 500), st.floats(0, 1)), min_size=1, max_size=30),
)
def test_the_budget_is_never_exceeded(rate: float, waves: list[tuple[float, float]]) -> None:
    time = Time()
    pace = time.pace(rate)
    began, spent = time.now, 0.0

    for units, took in waves:
        assert pace.ready(deadline=float("inf"))
        # The units of earlier waves no longer count.
        assert spent <= rate * (time.now - began) + 1e-6 * (1 + spent)
        spent += units
        sent = time.now
        time.now += took
        pace.spent(units, sent)


def test_the_time_that_a_wave_takes_counts_towards_the_wait_for_the_next() -> None:
    time = Time()
    pace = time.pace(100.0)
    time.now += 0.5

    pace.spent(60.0, 1000.0)

    assert pace.after == 1000.6


def test_what_a_slow_wave_has_left_of_the_budget_is_not_made_up() -> None:
    time = Time()
    pace = time.pace(100.0)
    time.now += 60.0
    pace.spent(10.0, 1000.0)

    pace.spent(10.0, time.now)

    assert pace.after == pytest.approx(time.now + 0.1)


def test_reads_count_against_the_rate_of_reads() -> None:
    time = Time()
    pace = time.pace()

    pace.read(120.0, 20, 20)

    assert pace.ready(deadline=time.now)
    assert pace.ready_to_read(deadline=time.now)
    assert time.now == 1000.2


def test_a_wait_that_a_clock_stored_that_was_ahead_ends_at_once() -> None:
    time = Time()
    pace = time.pace(100.0)
    pace.not_before(time.now + 86_400.0)
    time.now += 86_400.0
    pace.read(1.0, 20, 20)
    time.now -= 86_400.0

    assert pace.ready(deadline=time.now)
    assert pace.ready_to_read(deadline=time.now)


@pytest.mark.parametrize(("rate", "width"), [(1.0, 1), (140.0, 1), (400.0, 1), (2_400.0, 3), (20_000.0, 16)])
def test_no_more_writes_are_under_way_than_the_rate_needs(rate: float, width: int) -> None:
    assert Time().pace(rate).width == width


@pytest.mark.parametrize(("took", "width"), [(0.001, 1), (0.012, 2), (0.098, 10), (1.0, 16)])
def test_more_writes_are_under_way_if_the_table_is_far_away(took: float, width: int) -> None:
    time = Time()
    pace = time.pace(400.0)

    for seconds in (took, 5.0):
        pace.spent(4.0, time.now - seconds)

    assert pace.width == width


def test_a_clock_that_was_set_back_does_not_show_how_far_away_the_table_is() -> None:
    time = Time()
    pace = time.pace(400.0)

    pace.spent(4.0, time.now + 5.0)
    pace.spent(4.0, time.now - 0.022)

    assert pace.width == 3


def test_a_wait_for_other_writes_does_not_let_more_be_under_way() -> None:
    time = Time()
    pace = time.pace(400.0)

    for seconds in (0.8, 0.002, 0.8):
        pace.spent(4.0, time.now - seconds)

    assert pace.width == 1


@pytest.mark.parametrize(("rate", "items"), [(1.0, 10), (800.0, 20), (4_000.0, 100), (1e6, 200)])
def test_a_page_has_at_first_what_is_written_in_a_tenth_of_a_second(rate: float, items: int) -> None:
    assert Time().pace(rate).page == items


@pytest.mark.parametrize(
    ("units", "items", "writes", "following"),
    [
        (5.0, 20, 20, 20),  # each item needs a write
        (5.0, 20, 15, 26),
        (5.0, 20, 5, 40),  # few need one, but a page is at most twice as large as the one before
        (5.0, 20, 0, 40),
        (0.5, 20, 0, 40),
        (40.0, 20, 20, 9),  # large items: 18 units are 0.03 s of the rate of reads
        (1000.0, 10, 10, 1),
        (36.0, 20, 20, 10),
        (0.0, 20, 20, 20),  # nothing says what a page consumes
        (0.5, 0, 0, 20),  # nothing was read
    ],
)
def test_the_next_page_is_as_large_as_its_writes_and_its_units_allow(
    units: float, items: int, writes: int, following: int
) -> None:
    pace = Time().pace(800.0)

    pace.read(units, items, writes)

    assert pace.page == following


@pytest.mark.parametrize(("rate", "items"), [(1000.0, 60), (100.0, 8), (1.0, 8)])
def test_a_page_that_a_low_rate_bounds_reads_as_much_as_is_worth_a_request(rate: float, items: int) -> None:
    assert largest_page(rate, units=10.0, items=20) == items


@pytest.mark.parametrize("most", [200, 50])
def test_pages_of_items_that_need_no_writes_grow_until_a_bound(most: int) -> None:
    pace = Time().pace(800.0, most=most)

    for _ in range(10):
        pace.read(1.0, 20, 0)

    assert pace.page == most


def test_requests_beyond_the_remaining_time_are_not_sent() -> None:
    time = Time()
    pace = time.pace(1.0)
    pace.spent(60, time.now)

    ready = pace.ready(deadline=1005.0)

    assert (ready, time.now, pace.after) == (False, 1005.0, 1060.0)


@pytest.mark.parametrize("error", [HOT, UNKNOWN])
def test_a_hot_key_range_pauses_its_own_task_and_leaves_it_its_share(error: ThrottledError) -> None:
    time = Time()
    hot, cold = time.pace(), time.pace()

    for _ in range(20):
        hot.throttled(error)

    assert (hot.width, cold.width) == (16, 16)
    assert time.now < hot.after <= time.now + 1
    assert cold.after <= time.now


def test_pauses_start_again_after_a_wave_that_succeeded_in_part() -> None:
    time = Time()
    pace = time.pace()
    for _ in range(6):
        pace.throttled(HOT)

    pace.succeeded()
    time.now = pace.after
    pace.throttled(HOT)

    assert pace.after - time.now < 0.1


def test_a_throttled_table_slows_all_tasks() -> None:
    time = Time()
    one, other = time.pace(), time.pace()

    one.throttled(FULL)

    assert (one.width, other.width) == (8, 8)
    assert one.after == other.after > time.now


@pytest.mark.parametrize(("error", "longest", "width"), [(FULL, 20, 8), (HOT, 0.4, 16), (UNKNOWN, 0.4, 16)])
def test_pauses_grow_during_throttling_and_end_after_it(error: ThrottledError, longest: float, width: int) -> None:
    time = Time()
    pace = time.pace()
    pauses = []

    for _ in range(12):
        pace.throttled(error)
        pauses.append(pace.after - time.now)
        time.now = pace.after
    slow = pace.width
    for _ in range(60):
        pace.succeeded()
    pace.throttled(error)

    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert longest / 2 < pauses[-1] <= longest
    assert slow == (1 if error is FULL else 16)
    assert pace.width == width
    assert pace.after - time.now == pauses[0]
