"""The deadline of an operation, under a clock that only moves when something takes time."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard.errors import EngineError, EngineUnavailableError, OutcomeUnknownError, ThrottledError
from dynashard.repository import RetryPolicy
from dynashard.runtime import Runtime
from dynashard.transport.attempts import TOKEN_MISMATCH, Attempts
from dynashard.transport.classification import unanswered
from dynashard.transport.deadline import evidence, remaining, within
from dynashard.transport.interface import Resend

pytestmark = pytest.mark.unit

LOST = unanswered("GetItem", "ReadTimeoutError", "No answer")
THROTTLED = ThrottledError("busy", operation="GetItem", aws_code="ThrottlingException")


@dataclass
class Time:
    """A clock that only moves during waits."""

    at: float = 1_000.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.at

    @property
    def runtime(self) -> Runtime:
        return Runtime(sleep=self.sleep, random=lambda: 0.5, monotonic=self)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += seconds


def test_without_a_deadline_the_time_is_unlimited() -> None:
    with evidence():
        assert remaining() == inf


SECONDS = st.floats(0.01, 1000)


@given(st.lists(st.tuples(SECONDS, st.booleans(), st.floats(0, 10)), min_size=1, max_size=6))
def test_an_inner_deadline_never_extends_an_outer_one(levels: list[tuple[float, bool, float]]) -> None:
    time = Time()
    with ExitStack() as opened:
        for number, (seconds, reserve, passed) in enumerate(levels):
            before, whole = remaining(), _with_evidence()
            opened.enter_context(within(seconds, None if number else time, reserve=reserve))
            assert remaining() <= min(before, seconds) + 1e-6
            assert _with_evidence() <= min(whole, seconds) + 1e-6
            time.at += passed
    assert remaining() == inf


def _with_evidence() -> float:
    with evidence():
        return remaining()


def test_a_nested_deadline_uses_the_clock_of_the_outer_one() -> None:
    time = Time()
    with within(10, time), within(5):
        time.at += 3
        assert remaining() == 2.0


def test_deadlines_by_different_clocks_nest() -> None:
    outer, inner = Time(1_000), Time(5)
    with within(10, outer):
        outer.at += 4
        with within(100, inner):
            assert remaining() == 6.0


@pytest.mark.parametrize(("seconds", "kept"), [(29, 5.8), (10, 2), (2, 0.5), (0.6, 0.3)])
def test_a_share_of_the_time_is_kept_for_evidence(seconds: float, kept: float) -> None:
    with within(seconds, Time(), reserve=True):
        assert remaining() == pytest.approx(seconds - kept)
        with evidence():
            assert remaining() == pytest.approx(seconds)
        assert remaining() == pytest.approx(seconds - kept)


def test_an_inner_operation_cannot_use_the_time_that_the_outer_one_keeps() -> None:
    time = Time()
    with within(10, time, reserve=True):
        time.at += 7
        with within(10):
            assert remaining() == pytest.approx(1)
            with evidence():
                assert remaining() == pytest.approx(3)


@pytest.mark.parametrize("resend", list(Resend))
@pytest.mark.parametrize("answered", [0.1, 3.0, 60.0])
def test_slow_attempts_end_within_the_operation_and_leave_time_for_evidence(resend: Resend, answered: float) -> None:
    time = Time()
    attempts = Attempts(most=1000, runtime=time.runtime)

    def slow(_: int) -> dict[str, Any]:
        time.at += min(answered, remaining())
        raise unanswered("PutItem", "ReadTimeoutError", "No answer")

    with within(10, time, reserve=True):
        with pytest.raises(OutcomeUnknownError):
            attempts.run(slow, "PutItem", resend)
        with evidence():
            assert remaining() >= 2.0

    assert time.at <= 1_010


@pytest.mark.parametrize("error", [LOST, THROTTLED], ids=["lost", "throttled"])
def test_evidence_is_requested_until_its_time_is_over(error: EngineError) -> None:
    time, sent = Time(), 0
    attempts = Attempts(most=4, runtime=time.runtime)

    def failing(number: int) -> dict[str, Any]:
        nonlocal sent
        sent = number
        time.at += 0.1
        if number < 12:
            raise error
        return {"Item": {}}

    with within(10, time, reserve=True):
        with pytest.raises(EngineError):
            attempts.run(failing, "GetItem", Resend.ALWAYS)
        assert sent == 4
        with evidence(), within(60):
            assert attempts.run(failing, "GetItem", Resend.ALWAYS) == {"Item": {}}
    assert sent == 12


def test_a_token_that_another_request_has_used_up_is_an_answer_after_an_ambiguous_attempt() -> None:
    used = EngineError("used", operation="TransactWriteItems", aws_code=TOKEN_MISMATCH)
    answers = [unanswered("TransactWriteItems", "ReadTimeoutError", "No answer"), used]

    with pytest.raises(EngineError) as raised:
        Attempts(runtime=Time().runtime).run(
            lambda number: fail(answers[number - 1]), "TransactWriteItems", Resend.ALWAYS
        )

    assert raised.value is used


def fail(error: EngineError) -> dict[str, Any]:
    raise error


def test_several_requests_of_one_operation_share_its_time() -> None:
    time, rounds = Time(), 0
    attempts = Attempts(most=3, runtime=time.runtime)

    def unreachable(_: int) -> dict[str, Any]:
        time.at += max(0.0, min(2.0, remaining()))
        raise EngineUnavailableError("No connection", operation="PutItem")

    policy = RetryPolicy(seconds=3600, runtime=time.runtime)
    with within(20, time):
        for _ in policy.pauses():
            rounds += 1
            with pytest.raises(EngineUnavailableError):
                attempts.run(unreachable, "PutItem", Resend.IF_NOT_EXECUTED)

    assert rounds > 1
    assert 1_010 < time.at <= 1_020


def test_a_retry_policy_uses_its_own_shorter_time() -> None:
    time = Time()
    policy = RetryPolicy(seconds=1, runtime=time.runtime)

    with within(60, time):
        list(policy.pauses())

    assert time.at <= 1_001
