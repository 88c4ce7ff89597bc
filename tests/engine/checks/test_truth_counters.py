"""Answers of a counter while requests fail and its parts become more. See `dynashard_checks.truth --counters`."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from dynashard import Update
from dynashard_checks.counter_answers import Asked, judge
from dynashard_checks.truth import counters
from dynashard_checks.truth.counters import Verdict, run_counters
from dynashard_checks.truth.proxy import Rates
from dynashard_patterns import CounterStore
from dynashard_patterns.counters.parts import PartReader, PartsRead
from dynashard_patterns.counters.shares import LIMIT, Bounds
from tests.depth import examples

pytestmark = pytest.mark.engine

OPERATIONS = examples(800)
FAULTS = Rates(0.07, 0.19, hold=0.1, late=1.0)


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return run_counters(OPERATIONS, callers=12, rates=FAULTS, seed=3)


def test_every_answer_of_a_counter_is_true_while_requests_fail(verdict: Verdict) -> None:
    assert verdict.false == []
    assert verdict.value == verdict.wanted
    assert verdict.answers["take ok"] > OPERATIONS / 4
    assert verdict.answers["take exhausted"] > OPERATIONS / 20
    assert {"lost", "answer_lost", "late", "throttled"} <= verdict.engine["faults"].keys()
    assert sum(verdict.engine["faults"].values()) > verdict.engine["requests"] / 5


def test_its_parts_become_more_meanwhile(verdict: Verdict) -> None:
    assert verdict.parts > 2


def test_a_run_in_which_the_parts_stay_as_they_are_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_LONGEST_START", 0.0)
    monkeypatch.setattr(counters.Run, "_grow", lambda _: None)

    found = run_counters(20, callers=2, rates=Rates(hold=0, late=0))

    assert found.false == ["the parts did not become more, so nothing was asked meanwhile"]


def test_an_error_of_what_makes_the_parts_more_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(run: counters.Run) -> None:
        run.growing.set()
        raise ValueError("a bug")

    monkeypatch.setattr(counters.Run, "_grow", fail)

    with pytest.raises(ValueError, match="a bug"):
        run_counters(20, callers=2, rates=Rates(hold=0, late=0))


def asked(order: str, amount: int, start: float, end: float, said: str = "ok", *, value: int | None = None) -> Asked:
    return Asked(order, amount, start, end, said, value)


def judged(questions: list[Asked], done: set[str], value: int) -> list[str]:
    moments = {each.order: (each.start, each.end if each.said == "ok" else inf) for each in questions}
    return judge(questions, {name: moments[name] for name in done}, value, 10, Bounds(-5, 5000))


FALSE: list[tuple[str, list[Asked], set[str], int]] = [
    ("it was not done", [asked("a", -1, 1, 2)], set(), 10),
    ("it was done", [asked("a", -1, 1, 2, "refused")], {"a"}, 9),
    ("what was done makes 9", [asked("a", -1, 1, 2)], {"a"}, 10),
    ("what was done makes 9", [asked("a", -1, 1, 2, "unknown")], {"a"}, 10),
    ("between 9 and 9", [asked("a", -1, 1, 2), asked("", 0, 3, 4, value=10)], {"a"}, 9),
    ("between 10 and 10", [asked("a", -1, 5, 6), asked("", 0, 3, 4, value=9)], {"a"}, 9),
    ("between 10 and 11", [asked("a", 1, 1, 5), asked("", 0, 3, 4, value=12)], {"a"}, 11),
    ("there was enough", [asked("a", -3, 1, 2, "exhausted", value=10)], set(), 10),
    ("between 10 and 10", [asked("a", -16, 1, 2, "exhausted", value=9)], set(), 10),
]


@pytest.mark.parametrize(("line", "questions", "done", "value"), FALSE)
def test_a_false_answer_is_found(line: str, questions: list[Asked], done: set[str], value: int) -> None:
    found = judged(questions, done, value)

    assert len(found) == 1
    assert line in found[0]


def test_answers_that_are_true_are_not_reported() -> None:
    questions = [
        asked("a", -1, 1, 5),
        asked("b", -2, 1, 2, "unknown"),
        asked("c", 1, 1, 2, "refused"),
        asked("d", -16, 2, 3, "exhausted", value=9),
        asked("", 0, 3, 4, value=10),
        asked("", 0, 3, 4, value=7),
        asked("", 0, 6, 7, value=9),
    ]

    assert judged(questions, {"a", "b"}, 7) == []


def no_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bounds, "least", lambda *_: -LIMIT)


def a_gift(patch: pytest.MonkeyPatch) -> None:
    """A part that borrows gets one more than the others give."""
    step: Callable[..., Update] = CounterStore._step

    def more(*given: Any) -> Update:
        return step(*given[:5], given[5] + 1) if len(given) > 5 else step(*given)

    patch.setattr(CounterStore, "_step", more)


def unknown_parts(patch: pytest.MonkeyPatch) -> None:
    """Readers know the first part only."""
    read = PartReader.read

    def first(reader: PartReader[Any], partition: str, how: str) -> PartsRead[Any]:
        found = read(reader, partition, how)
        return found._replace(items=[found.items[0], *(None for _ in found.items[1:])])

    patch.setattr(PartReader, "read", first)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("broken", [no_floor, a_gift, unknown_parts])
def test_a_broken_rule_is_found(broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)

    assert run_counters(250, callers=6, rates=Rates(hold=0, late=0), seed=4).false
