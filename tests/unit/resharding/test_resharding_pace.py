"""The pace of a task: within its budget, and slower after throttles."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import KeyRangeThrottledError, TableThrottledError, ThrottledError
from dynashard.resharding.pace import Pace, Speed
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

    def pace(self, rate: float = 10_000.0, width: int = 16) -> Pace:
        return Pace(
            Rate(rate, 600.0, 4.0), width=width, table=self.table, runtime=Runtime(self, self.sleep, lambda: 0.5)
        )


@given(
    rate=st.floats(1, 10_000),
    waves=st.lists(st.floats(0, 500), min_size=1, max_size=30),
)
def test_the_budget_is_never_exceeded(rate: float, waves: list[float]) -> None:
    time = Time()
    pace = time.pace(rate)
    began, spent = time.now, 0.0

    for units in waves:
        assert pace.ready(deadline=float("inf"))
        # The units of earlier waves no longer count.
        assert spent <= rate * (time.now - began) + 1e-6 * (1 + spent)
        spent += units
        pace.spent(units)


def test_reads_count_against_the_rate_of_reads() -> None:
    time = Time()
    pace = time.pace()

    pace.read(120.0)

    assert pace.ready(deadline=time.now)
    assert pace.ready_to_read(deadline=time.now)
    assert time.now == 1000.2


def test_a_wait_that_a_clock_stored_that_was_ahead_ends_at_once() -> None:
    time = Time()
    pace = time.pace(100.0)
    pace.not_before(time.now + 86_400.0)
    time.now += 86_400.0
    pace.read(1.0)
    time.now -= 86_400.0

    assert pace.ready(deadline=time.now)
    assert pace.ready_to_read(deadline=time.now)


@pytest.mark.parametrize(("rate", "width"), [(1.0, 1), (140.0, 1), (400.0, 3), (10_000.0, 16)])
def test_a_wave_is_no_larger_than_a_short_time_of_the_budget(rate: float, width: int) -> None:
    assert Time().pace(rate).width == width


def test_requests_beyond_the_remaining_time_are_not_sent() -> None:
    time = Time()
    pace = time.pace(1.0)
    pace.spent(60)

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
