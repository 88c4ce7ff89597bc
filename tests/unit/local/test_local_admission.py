"""Admission of calls while every environment is busy: their order, and refusals."""

import pytest

from dynashard_local.functions.admission import EXPENSIVE_SHARE, SLOW_SECONDS, Admission, FullError

pytestmark = pytest.mark.unit


def running(admission: Admission[str]) -> list[str]:
    """Start the calls that may run now, and return their names in order."""
    started = []
    while call := admission.next():
        started.append(call)
    return started


def test_calls_run_up_to_the_limit_in_the_order_of_arrival() -> None:
    admission = Admission[str](2, 10)
    for name in ("a", "b", "c"):
        admission.join(name, expensive=False)

    assert running(admission) == ["a", "b"]
    admission.done("a")
    assert running(admission) == ["c"]


def test_cheap_calls_run_before_earlier_expensive_ones() -> None:
    admission = Admission[str](1, 10)
    for name, expensive in (("list", True), ("get", False), ("put", False)):
        admission.join(name, expensive=expensive)

    assert running(admission) == ["get"]
    admission.done("get")
    assert running(admission) == ["put"]
    admission.done("put")
    assert running(admission) == ["list"]


def test_expensive_calls_never_occupy_the_last_environment() -> None:
    admission = Admission[str](3, 40)
    for number in range(5):
        admission.join(f"list {number}", expensive=True)

    assert running(admission) == ["list 0", "list 1"]
    admission.join("get", expensive=False)
    assert running(admission) == ["get"]
    admission.done("list 0")
    assert running(admission) == ["list 2"]


def test_a_single_environment_runs_expensive_calls_too() -> None:
    admission = Admission[str](1, 10)
    admission.join("list", expensive=True)

    assert running(admission) == ["list"]


def test_expensive_calls_are_refused_long_before_cheap_ones() -> None:
    places = 8
    admission = Admission[str](1, places)
    admission.join("runs", expensive=False)
    running(admission)
    taken = places // EXPENSIVE_SHARE

    for expensive, most in ((True, taken), (False, places - taken)):
        for _ in range(most):
            admission.join("waits", expensive=expensive)
        with pytest.raises(FullError):
            admission.join("one too many", expensive=expensive)


def test_a_free_environment_takes_a_call_even_if_no_call_may_wait() -> None:
    admission = Admission[str](1, 0)

    admission.join("a", expensive=True)

    assert running(admission) == ["a"]
    with pytest.raises(FullError):
        admission.join("b", expensive=False)


def test_waiting_calls_can_be_removed() -> None:
    admission = Admission[str](1, 10)
    for name in ("a", "b", "c"):
        admission.join(name, expensive=name == "c")
    running(admission)

    assert admission.drain() == ["b", "c"]
    admission.done("a")
    assert running(admission) == []


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_no_more_quick_calls_run_at_once_than_there_are_processors() -> None:
    clock = Clock()
    admission = Admission[str](4, 10, 2, clock=clock)
    for name in ("a", "b", "c", "d"):
        admission.join(name, expensive=False)

    assert running(admission) == ["a", "b"]
    clock.now += SLOW_SECONDS / 2
    assert running(admission) == []
    admission.done("b")
    assert running(admission) == ["c"]
    clock.now += SLOW_SECONDS / 2
    # The first one has become slow, and the third one has not.
    assert running(admission) == ["d"]


def test_calls_that_take_long_leave_the_other_environments_to_others() -> None:
    clock = Clock()
    admission = Admission[str](3, 10, 1, clock=clock)
    for name in ("a", "b", "c", "d"):
        admission.join(name, expensive=False)
    started = []

    for _ in range(4):
        started.append(running(admission))
        clock.now += SLOW_SECONDS

    assert started == [["a"], ["b"], ["c"], []]


def test_the_pause_before_the_next_look_is_until_a_running_call_is_slow() -> None:
    clock = Clock()
    admission = Admission[str](2, 10, 1, clock=clock)
    pauses = []

    for name in ("a", "b", "c"):
        admission.join(name, expensive=False)
        running(admission)
        pauses.append(admission.pause)
        clock.now += SLOW_SECONDS / 4
    clock.now += SLOW_SECONDS
    assert running(admission) == ["b"]

    # Nothing waits; then "b" waits for "a"; after that "c" waits for an environment.
    assert pauses == pytest.approx([None, SLOW_SECONDS * 3 / 4, SLOW_SECONDS / 2])
    assert admission.pause is None
