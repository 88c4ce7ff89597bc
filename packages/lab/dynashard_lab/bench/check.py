"""Compare a run with the committed one: nothing of ours may have become more than 15% dearer, and no rule looser."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dynashard_lab.bench.clients.interface import CLIENTS, OURS
from dynashard_lab.bench.measure import Fact, Figure
from dynashard_lab.bench.report import Result

TOLERANCE: Final = 1.15
COUNTED: Final = frozenset({"Queries", "rounds", "units", "items", "bytes"})
"""Units of facts that do not depend on the machine."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A figure that is worse than the committed one, missing, or measured by other rules.

    Attributes:
        subject: the subject of the benchmark.
        what: the row and the contender, or the fact.
        how: what is different.
    """

    subject: str
    what: str
    how: str

    def __str__(self) -> str:
        """Say what fell."""
        return f"{self.subject}: {self.what} {self.how}"


@dataclass(frozen=True, slots=True)
class _Measured:
    """A figure or a fact, as far as it is compared.

    Attributes:
        value: the ratio or the count; None if it is not compared, because it is of a peer or of the machine.
        limit: the highest ratio or count.
        most_megabytes: the highest memory.
        rule: what the figure is compared with, on which clock; another rule makes another figure.
        highest: the value that this run may have at most.
    """

    value: float | None
    limit: float | None
    most_megabytes: float | None = None
    rule: str = ""
    highest: float = math.inf


def falls(committed: Mapping[str, Result], results: Mapping[str, Result], subjects: Collection[str]) -> list[Fall]:
    """Return what is worse than committed by more than 15%, what is no longer measured, and limits that were raised.

    Counts must stay within their limits whatever the tolerance, because they are the same in every run. Ratios of peers
    are not compared, because nobody here can change them, nor are facts in units of time and memory; but all of them
    must still be measured, because limits refer to peers.

    Args:
        committed: the results by subject that this run is compared with.
        results: those of this run.
        subjects: the subjects to compare. What has no committed figures is not compared.
    """
    return [fall for subject in subjects if subject in committed for fall in _of(subject, committed, results)]


def in_both(first: Iterable[Fall], second: Iterable[Fall]) -> list[Fall]:
    """Return those of the second run that fell in the first as well, so that a slow minute is not a fall."""
    before = {(fall.subject, fall.what) for fall in first}
    return [fall for fall in second if (fall.subject, fall.what) in before]


def _of(subject: str, committed: Mapping[str, Result], results: Mapping[str, Result]) -> Iterator[Fall]:
    now = dict(_measured(results.get(subject, Result())))
    for what, before in _measured(committed[subject]):
        for how in _worse(before, now.get(what)):
            yield Fall(subject, what, how)


def _worse(before: _Measured, now: _Measured | None) -> Iterator[str]:
    if now is None:
        yield "was not measured"
        return
    if now.rule != before.rule:
        yield f"is {now.rule}; {before.rule} is committed"
    if before.value is not None and (now.value is None or not now.value <= before.highest):
        limit = f"; its limit is {before.limit:g}" if before.highest == before.limit else ""
        yield f"is {_text(now.value)}; {before.value:g} is committed{limit}"
    for kind, was, is_now in (
        ("limit", before.limit, now.limit),
        ("limit of MB", before.most_megabytes, now.most_megabytes),
    ):
        if was is not None and (is_now is None or is_now > was):
            yield f"has the {kind} {_text(is_now)}; {was:g} is committed"


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _measured(result: Result) -> Iterator[tuple[str, _Measured]]:
    baselines: dict[str, str] = {}
    for figure in result.figures:
        yield (
            f"{figure.row}, {figure.contender}",
            _of_figure(figure, baselines.setdefault(figure.row, figure.contender)),
        )
    for fact in result.facts:
        yield f"{fact.subject}, {fact.name}", _of_fact(fact)


def _of_figure(figure: Figure, baseline: str) -> _Measured:
    rule = f"the ratio of {figure.clock} to {baseline}, with a limit to {figure.limit_to or baseline}"
    ratio = figure.ratio.median if _is_ours(figure) else None
    return _Measured(ratio, figure.limit, figure.most_megabytes, rule, figure.ratio.median * TOLERANCE)


def _of_fact(fact: Fact) -> _Measured:
    if fact.unit not in COUNTED:
        return _Measured(None, fact.limit, rule=fact.unit)
    highest = fact.value * TOLERANCE
    if fact.limit is not None and fact.met:
        highest = min(highest, fact.limit)
    return _Measured(fact.value, fact.limit, rule=fact.unit, highest=highest)


def _is_ours(figure: Figure) -> bool:
    return figure.contender in OURS or figure.contender not in CLIENTS
