"""The answers of a counter, and whether they are true: what random schedules and runs under faults have in common."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from dynashard.errors import DynashardError, ExhaustedError, OutcomeUnknownError
from dynashard_patterns.counters.shares import Bounds

OK, REFUSED, EXHAUSTED, UNKNOWN = "ok", "refused", "exhausted", "unknown"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its answer.

    Attributes:
        order: the id of its order; empty for a read.
        amount: by how much the counter was to change; less than 0 if it was taken.
        start, end: when it was sent and answered; an unknown outcome may be executed at any later time.
        said: `OK`, `REFUSED`, `EXHAUSTED` or `UNKNOWN`.
        value: the value that was read, or that a refusal reports; None for others.
    """

    order: str
    amount: int
    start: float
    end: float
    said: str
    value: int | None = None


class _Sums:
    """The sum of amounts up to a moment."""

    def __init__(self, pairs: Iterable[tuple[float, int]]) -> None:
        ordered = sorted(pairs)
        self._moments = [moment for moment, _ in ordered]
        self._sums = [0, *accumulate(amount for _, amount in ordered)]

    def until(self, moment: float) -> int:
        return self._sums[bisect_right(self._moments, moment)]

    def before(self, moment: float) -> int:
        return self._sums[bisect_left(self._moments, moment)]


def judge(
    asked: Sequence[Asked], done: Mapping[str, tuple[float, float]], value: int, begun: int, bounds: Bounds
) -> list[str]:
    """Return a line for each answer that is false.

    Args:
        asked: all questions.
        done: the orders that are stored, each with the moments between which it was executed.
        value: the value of the counter in the end.
        begun: its value in the beginning.
        bounds: its bounds.
    """
    floor = -inf if bounds.floor is None else bounds.floor
    ceiling = inf if bounds.ceiling is None else bounds.ceiling
    false = [
        f"{each}: it was {'done' if each.order in done else 'not done'}"
        for each in asked
        if each.order and each.said != UNKNOWN and (each.order in done) is not (each.said == OK)
    ]
    executed = [(each.amount, *done[each.order]) for each in asked if each.order in done]
    wanted = begun + sum(amount for amount, _, _ in executed)
    if value != wanted:
        false.append(f"the value is {value}, and what was done makes {wanted}")
    if not floor <= value <= ceiling:
        false.append(f"the value is {value}, beyond its bounds")
    # At most: what could have been done by then, without what could have been done later. At least: the reverse.
    could_add = _Sums((start, amount) for amount, start, _ in executed if amount > 0)
    must_add = _Sums((end, amount) for amount, _, end in executed if amount > 0)
    could_take = _Sums((start, amount) for amount, start, _ in executed if amount < 0)
    must_take = _Sums((end, amount) for amount, _, end in executed if amount < 0)
    for each in asked:
        if each.value is None:
            continue
        least = begun + must_add.before(each.start) + could_take.until(each.end)
        most = begun + could_add.until(each.end) + must_take.before(each.start)
        if not max(least, floor) <= each.value <= min(most, ceiling):
            false.append(f"{each}: the value was between {least} and {most}")
        if each.said == EXHAUSTED and floor <= each.value + each.amount <= ceiling:
            false.append(f"{each}: there was enough")
    return false


def answer_of(change: Callable[[], object], bounds: Bounds, *, adds: bool) -> tuple[str, int | None]:
    """Return what a change was answered with, and the value that a refusal reports."""
    try:
        change()
    except ExhaustedError as exhausted:
        room = int(exhausted.available)
        return EXHAUSTED, (bounds.ceiling or 0) - room if adds else (bounds.floor or 0) + room
    except OutcomeUnknownError:
        return UNKNOWN, None
    except DynashardError:
        return REFUSED, None
    return OK, None
