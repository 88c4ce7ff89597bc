"""How far a clock is off, by the dates of answers."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.runtime import Runtime
from dynashard.transport.clock_offset import ClockOffset, clock_offset_of

pytestmark = pytest.mark.unit

START = 1_780_000_000.0


def date(at: float) -> str:
    """Return the `Date` of an answer that is made at a true time."""
    return format_datetime(datetime.fromtimestamp(int(at), UTC), usegmt=True)


def after(off: float, *answers: tuple[float, float]) -> ClockOffset:
    """Return what a clock that is off has learned from answers: the true time of each, and how long it took."""
    offset = ClockOffset()
    for at, took in answers:
        offset.observe(date(at), at + off - took / 2, at + off + took / 2)
    return offset


@given(
    st.floats(-100.0, 100.0),
    st.lists(st.tuples(st.floats(0.0, 1000.0), st.floats(0.0, 3.0)), min_size=1, max_size=8),
)
def test_the_true_offset_lies_in_what_is_known(off: float, answers: list[tuple[float, float]]) -> None:
    offset = after(off, *((START + at, took) for at, took in sorted(answers)))

    assert offset.seconds is not None
    assert abs(offset.seconds - off) <= 2.1
    assert not offset.exceeds(abs(off) + 4.1)


def test_answers_narrow_what_is_known() -> None:
    offset = after(0.25, *((START + n + n / 20, 0.02) for n in range(20)))

    assert offset.seconds == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize(("off", "exceeds"), [(0.0, False), (-3.9, False), (3.9, False), (-6.1, True), (6.1, True)])
def test_a_clock_that_is_further_off_than_allowed_is_noticed_at_the_first_answer(off: float, *, exceeds: bool) -> None:
    assert after(off, (START + 0.5, 0.01)).exceeds(5.0) is exceeds


@pytest.mark.parametrize("off", [-4.8, 4.8])
def test_steady_answers_clear_a_clock_that_is_off_by_nearly_what_is_allowed(off: float) -> None:
    # The first answer of each second is always as early in it. The later ones make the difference.
    steady = ((START + second + fraction / 100, 0.005) for second in range(3) for fraction in range(1, 100, 3))

    assert not after(off, *steady).exceeds(5.0)


def test_a_clock_that_was_set_is_measured_anew() -> None:
    offset = after(0.0, (START, 0.01), (START + 1.5, 0.01))

    offset.observe(date(START + 3), START + 33, START + 33.01)

    assert offset.exceeds(5.0)
    assert offset.seconds == pytest.approx(29.5, abs=0.6)


def test_a_slow_answer_leaves_a_clock_in_doubt_until_the_next_fast_one() -> None:
    assert after(0.0, (START, 12.0)).exceeds(5.0)
    assert not after(0.0, (START, 12.0), (START + 20, 0.01)).exceeds(5.0)
    assert after(30.0, (START, 12.0), (START + 20, 0.01)).exceeds(5.0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_slow_answers_do_not_exclude_may_be(sign: int) -> None:
    offset = after(sign * 5.9, (START + 0.5, 1.4))

    assert offset.exceeds(5.0)
    assert abs(offset.furthest) >= 5.9
    assert offset.furthest * sign > 0


class Clocks:
    """A wall clock that may be set, a monotonic one that may stand still, and what answers say about the first."""

    def __init__(self) -> None:
        self.true, self.off, self.frozen = START + 0.5, 0.0, 0.0
        self.offset = ClockOffset(
            Runtime(clock=lambda: self.true + self.off, monotonic=lambda: self.true - START - self.frozen)
        )
        self.answer()

    def answer(self) -> None:
        self.offset.observe(date(self.true), *[self.true + self.off] * 2)


@pytest.mark.parametrize("seconds", [-600.0, -1.1, 1.1, 600.0])
def test_nothing_is_known_of_a_clock_that_was_set_until_the_next_answer(seconds: float) -> None:
    clocks = Clocks()
    assert not clocks.offset.outdated

    clocks.off = seconds

    assert clocks.offset.outdated
    assert clocks.offset.seconds is None
    # Of the same second.
    clocks.answer()
    assert not clocks.offset.outdated
    assert clocks.offset.exceeds(1.0 + abs(seconds) / 2)
    assert clocks.offset.seconds == pytest.approx(seconds, abs=0.6)


@pytest.mark.parametrize("seconds", [-0.9, 0.9])
def test_what_is_known_of_a_clock_includes_by_how_much_it_may_have_been_set(seconds: float) -> None:
    clocks = Clocks()
    assert not clocks.offset.exceeds(1.0)

    clocks.off = seconds

    assert not clocks.offset.outdated
    assert clocks.offset.exceeds(1.0)
    assert not clocks.offset.exceeds(1.5)


def test_an_answer_after_a_clock_was_set_is_not_combined_with_what_was_known_before() -> None:
    clocks = Clocks()
    clocks.true += 2.0
    clocks.off = 1.5

    # It says 0.4 to 3.0, which the range before, -0.5 to 0.5, does not contradict.
    clocks.offset.observe(date(START + 1.5), START + 2.4, START + 4.0)

    assert clocks.offset.furthest >= 1.5


def test_a_process_that_was_frozen_knows_nothing_any_more() -> None:
    clocks = Clocks()
    clocks.true += 60.0
    assert not clocks.offset.outdated

    clocks.frozen = 2.0

    assert clocks.offset.outdated


@pytest.mark.parametrize("text", ["", "today", "Tue, 24 Now 2026 13:45:47 GMT", "Tue, 24 Nov 2026"])
def test_what_is_not_a_date_says_nothing(text: str) -> None:
    offset = ClockOffset()

    offset.observe(text, START, START)

    assert offset.seconds is None
    assert not offset.exceeds(0.0)


def test_a_leap_second_is_the_end_of_its_minute() -> None:
    offset, end = ClockOffset(), datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()

    offset.observe("Sat, 31 Dec 2016 23:59:60 GMT", end + 0.5, end + 0.5)

    assert offset.seconds == 0.0


def test_a_clock_that_was_set_back_during_a_request_is_not_measured() -> None:
    offset = ClockOffset()

    offset.observe(date(START), START, START - 1)

    assert offset.seconds is None


def test_a_transport_that_knows_no_clock_has_an_unknown_offset() -> None:
    unknown = clock_offset_of(object())

    assert (unknown.seconds, unknown.furthest) == (None, 0.0)
