"""The linearizability checker on histories that are known to be right or wrong."""

from math import inf
from typing import Any

import pytest

from dynashard_checks.linearizability.checker import check, check_all
from dynashard_checks.linearizability.model import UNSEEN, Answer, Kind, Operation, Seen, State

pytestmark = pytest.mark.unit

CREATE, PUT, UPDATE, DELETE, GET = Kind.CREATE, Kind.PUT, Kind.UPDATE, Kind.DELETE, Kind.GET
OK, EXISTS, MISSING, MISMATCH, UNKNOWN = Answer.OK, Answer.EXISTS, Answer.MISSING, Answer.MISMATCH, Answer.UNKNOWN


def op(kind: Kind, invoked: float, returned: float, answer: Answer = OK, **more: Any) -> Operation:
    return Operation(kind, invoked, returned, answer, name=f"at {invoked}", **more)


def lost(kind: Kind, invoked: float, **more: Any) -> Operation:
    return op(kind, invoked, inf, UNKNOWN, **more)


def saw(invoked: float, returned: float, version: str | None, total: int = 0) -> Operation:
    if version is None:
        return op(GET, invoked, returned, MISSING)
    return op(GET, invoked, returned, seen=Seen(State(version, total)))


def created(invoked: float, returned: float, version: str) -> Operation:
    return op(CREATE, invoked, returned, version=version)


def swapped(invoked: float, returned: float, expected: str, version: str, answer: Answer = OK) -> Operation:
    return op(PUT, invoked, returned, answer, expected=expected, version=version)


RIGHT = {
    "nothing happened": [],
    "one after the other": [created(0, 1, "a"), saw(2, 3, "a"), op(DELETE, 4, 5), saw(6, 7, None)],
    "a read during a write sees either state": [created(0, 9, "a"), saw(1, 2, None), saw(3, 4, "a")],
    "one of two creates finds the other": [created(0, 5, "a"), op(CREATE, 1, 4, EXISTS, version="b"), saw(6, 7, "a")],
    "a lost create was executed": [lost(CREATE, 0, version="a"), saw(2, 3, "a")],
    "a lost create was never executed": [lost(CREATE, 0, version="a"), saw(2, 3, None)],
    "a lost create is executed late": [lost(CREATE, 0, version="a"), saw(2, 3, None), saw(4, 5, "a")],
    "a lost put is executed after another write": [
        created(0, 1, "a"), lost(PUT, 2, version="b"), saw(3, 4, "a"), saw(5, 6, "b"),
    ],
    "a lost delete is executed after the item was created again": [
        created(0, 1, "a"), lost(DELETE, 2), op(DELETE, 3, 4), created(5, 6, "b"), saw(7, 8, None),
    ],
    "a lost put explains a refused compare-and-set": [
        created(0, 1, "a"), lost(PUT, 2, version="b"), swapped(3, 4, "a", "c", MISMATCH), swapped(5, 6, "b", "d"),
    ],
    "a lost put with an unseen version explains a refused compare-and-set": [
        created(0, 1, "a"), lost(PUT, 2, version="b"),
        op(PUT, 3, 4, MISMATCH, expected="a", version="c", seen=Seen(State(UNSEEN), has_total=False)),
    ],
    "two lost deletes are executed at different times": [
        created(0, 1, "a"), lost(DELETE, 1), lost(DELETE, 1), saw(2, 3, None), created(4, 5, "b"), saw(6, 7, None),
    ],
    "additions in the order of the answers": [
        created(0, 1, "a"),
        op(UPDATE, 2, 9, version="b", adds=2, seen=Seen(State("b", 3))),
        op(UPDATE, 2, 9, version="c", adds=1, seen=Seen(State("c", 1))),
    ],
}  # fmt: skip

WRONG = {
    "a stale read": [created(0, 1, "a"), swapped(2, 3, "a", "b"), saw(4, 5, "a")],
    "a later read sees an earlier state": [created(0, 9, "a"), saw(1, 2, "a"), saw(3, 4, None)],
    "both creates succeed": [created(0, 5, "a"), created(1, 4, "b")],
    "both compare-and-sets succeed": [created(0, 1, "a"), swapped(2, 9, "a", "b"), swapped(3, 8, "a", "c")],
    "a value that no client wrote": [created(0, 1, "a"), saw(2, 3, "b")],
    "a put's resend overwrites an acknowledged compare-and-set": [
        op(PUT, 0, 9, version="a"), saw(1, 2, "a"), swapped(3, 4, "a", "b"), saw(10, 11, "a"),
    ],
    "a delete's resend deletes another client's new item": [
        created(0, 1, "a"), op(DELETE, 2, 9), saw(3, 4, None), created(5, 6, "b"), saw(10, 11, None),
    ],
    "a create's resend restores a deleted item": [
        created(0, 9, "a"), saw(1, 2, "a"), op(DELETE, 3, 4), saw(10, 11, "a"),
    ],
    "a compare-and-set is refused but was applied": [
        created(0, 1, "a"), swapped(2, 5, "a", "b", MISMATCH), saw(6, 7, "b"),
    ],
    "a delete of a key that never existed succeeds": [saw(0, 1, None), op(DELETE, 2, 3), saw(4, 5, None)],
    "a refused write is applied": [created(0, 1, "a"), saw(2, 3, "a"), saw(4, 5, None)],
    "a create is refused but there is no item": [
        saw(0, 1, None), op(CREATE, 2, 3, EXISTS, version="a"), saw(4, 5, None),
    ],
    "an update is applied twice": [
        created(0, 1, "a"), op(UPDATE, 2, 3, version="b", adds=1, seen=Seen(State("b", 1))), saw(4, 5, "b", 2),
    ],
    "a counter misses an increment": [
        created(0, 1, "a"), op(UPDATE, 2, 3, version="b", adds=1), op(UPDATE, 4, 5, version="c", adds=1),
        saw(6, 7, "c", 1),
    ],
    "an acknowledged create is lost": [created(0, 1, "a"), saw(2, 3, None)],
    "a lost create is executed twice": [
        lost(CREATE, 0, version="a"), saw(1, 2, "a"), op(DELETE, 3, 4), saw(5, 6, None), saw(7, 8, "a"),
    ],
    "one lost delete is executed twice": [
        created(0, 1, "a"), lost(DELETE, 1), saw(2, 3, None), created(4, 5, "b"), saw(6, 7, None),
    ],
    "a put answers created but replaced an item": [created(0, 1, "a"), op(PUT, 2, 3, version="b", created=True)],
    "a put answers replaced but there was no item": [op(PUT, 2, 3, version="b", created=False)],
    "a refusal names a version that the item did not have": [
        created(0, 1, "a"), created(9, 10, "b"),
        op(PUT, 2, 3, MISMATCH, expected="x", version="c", seen=Seen(State("b"), has_total=False)),
    ],
    "a refusal names an unseen version but every write is known": [
        created(0, 1, "a"),
        op(PUT, 2, 3, MISMATCH, expected="x", version="c", seen=Seen(State(UNSEEN), has_total=False)),
    ],
    "a conditional delete removes another version": [
        created(0, 1, "a"), swapped(2, 3, "a", "b"), op(DELETE, 4, 5, expected="a"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_that_some_order_explains_is_accepted(name: str) -> None:
    assert check(RIGHT[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_history_that_no_order_explains_is_refused(name: str) -> None:
    assert check(WRONG[name]) is not None


def test_a_violation_names_the_first_answer_that_cannot_be_true() -> None:
    violation = check([created(0, 1, "a"), saw(2, 3, "a"), saw(4, 5, None), saw(6, 7, None)])

    assert violation is not None
    assert violation.operation.invoked == 4
    assert violation.states == (State("a"),)
    assert "saw a (0)" in str(violation)


def test_each_key_is_judged_by_itself() -> None:
    histories = {"right": RIGHT["one after the other"], "wrong": WRONG["a stale read"]}

    assert list(check_all(histories)) == ["wrong"]


def test_a_history_may_begin_with_an_item() -> None:
    assert check([saw(0, 1, "a", 3)], initial=State("a", 3)) is None
    assert check([saw(0, 1, None)], initial=State("a", 3)) is not None
