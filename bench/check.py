"""Compare a run with the committed one: nothing of ours may have become more than 15% dearer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bench.clients.interface import CLIENTS, OURS
from bench.measure import Fact, Figure
from bench.report import Result

TOLERANCE: Final = 1.15
COUNTED: Final = frozenset({"Queries", "rounds", "units", "items", "bytes"})
"""Units of facts that do not depend on the machine."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A figure that is worse than the committed one, or is missing.

    Attributes:
        subject: the subject of the benchmark.
        what: the row and the contender, or the fact.
        committed: the committed ratio or value.
        now: that of this run; None if it was not measured.
    """

    subject: str
    what: str
    committed: float
    now: float | None

    def __str__(self) -> str:
        """Say what fell."""
        if self.now is None:
            return f"{self.subject}: {self.what} was not measured; {self.committed:g} is committed"
        change = f"{self.now / self.committed - 1:+.0%}" if self.committed else "more than none"
        return f"{self.subject}: {self.what} is {self.now:g}; {self.committed:g} is committed ({change})"


def falls(committed: Mapping[str, Result], results: Mapping[str, Result]) -> list[Fall]:
    """Return what is worse than committed by more than 15%.

    Ratios of peers are not compared, because nobody here can change them, nor are facts in units of time and memory.

    Args:
        committed: the results by subject that this run is compared with.
        results: those of this run. Subjects that it did not measure are not compared.
    """
    return [fall for subject in results if subject in committed for fall in _of(subject, committed, results)]


def _of(subject: str, committed: Mapping[str, Result], results: Mapping[str, Result]) -> Iterator[Fall]:
    now = dict(_values(results[subject]))
    for what, before in _values(committed[subject]):
        value = now.get(what)
        if value is None or value > before * TOLERANCE:
            yield Fall(subject, what, before, value)


def _values(result: Result) -> Iterator[tuple[str, float]]:
    for figure in filter(_is_ours, result.figures):
        yield f"{figure.row}, {figure.contender}", figure.ratio.median
    for fact in filter(_is_counted, result.facts):
        yield f"{fact.subject}, {fact.name}", fact.value


def _is_ours(figure: Figure) -> bool:
    return figure.contender in OURS or figure.contender not in CLIENTS


def _is_counted(fact: Fact) -> bool:
    return fact.unit in COUNTED
