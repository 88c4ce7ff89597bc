"""Writes the measured parts of docs/performance.md, its pictures, and the figures that later runs are compared with.

The page is written by people. A run replaces only what stands between `<!-- measured: NAME -->` and `<!-- end -->`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dynashard_lab.bench.measure import Fact, Figure
from dynashard_lab.bench.pictures import bars, number_of
from dynashard_lab.bench.report import VERDICTS, Result, limit_of

ROOT: Final = Path(__file__).resolve().parents[4]
DOCS: Final = ROOT / "docs"
COMMITTED: Final = DOCS / "performance.json"
_MEASURED: Final = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured, where and when.

    Attributes:
        machine: processor, number of processors, system, version of Python.
        command: what was run.
        date: of the run, `2026-11-22`.
        results: by subject.
    """

    machine: Mapping[str, Any]
    command: str
    date: str
    results: Mapping[str, Result]

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        subjects = {name: result.as_json() for name, result in self.results.items()}
        return {"machine": dict(self.machine), "command": self.command, "date": self.date, "subjects": subjects}

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Return a run that was written before."""
        content = json.loads(path.read_text("utf-8"))
        results = {name: Result.from_json(result) for name, result in content["subjects"].items()}
        return cls(content["machine"], content["command"], content["date"], results)

    def write(self, path: Path) -> None:
        """Write the run as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")


def write_page(run: Run, docs: Path = DOCS) -> None:
    """Replace the measured parts of the page, and write its pictures and figures."""
    page = docs / "performance.md"
    page.write_text(filled(page.read_text("utf-8"), run), "utf-8")
    for subject, result in run.results.items():
        if result.figures:
            picture = docs / picture_of(subject)
            picture.parent.mkdir(exist_ok=True)
            picture.write_text(bars(by_row(result.figures)), "utf-8")
    run.write(docs / COMMITTED.name)


def filled(page: str, run: Run) -> str:
    """Return the text of a page with the measured parts of a run in it. Parts that the run has not are kept."""
    parts = {"machine": _machine(run), "limits": "\n".join(_limits(run.results.values()))}
    parts |= {subject: "\n".join(_subject(subject, result)) for subject, result in run.results.items()}

    def replaced(found: re.Match[str]) -> str:
        content = parts.get(found[2])
        return found[0] if content is None else f"{found[1]}\n{content}\n\n{found[3]}"

    return _MEASURED.sub(replaced, page)


def picture_of(subject: str) -> str:
    """Return where the picture of a subject is, in the folder of the page."""
    return f"images/performance-{subject}.svg"


def by_row(figures: Sequence[Figure]) -> dict[str, list[Figure]]:
    """Return figures by the names of their rows, in order."""
    rows: dict[str, list[Figure]] = {}
    for figure in figures:
        rows.setdefault(figure.row, []).append(figure)
    return rows


def _machine(run: Run) -> str:
    about = run.machine
    return (
        f"`{run.command}`, {run.date}: {about['processors']} processors ({about['processor']}), {about['system']}, "
        f"Python {about['python']}."
    )


def _limits(results: Iterable[Result]) -> Iterator[str]:
    yield "| what | figure | at most | |"
    yield "|---|---|---|---|"
    for result in results:
        for figure in result.figures:
            if figure.limited is not None:
                what = f"{figure.row}, {figure.contender}"
                yield f"| {what} | {number_of(figure.limited)} | {limit_of(figure)} | {VERDICTS[figure.met]} |"
        for fact in result.facts:
            if fact.limit is not None:
                value = f"{_amount(fact.value)} {fact.unit}"
                yield f"| {fact.subject}: {fact.name} | {value} | {fact.limit:g} | {VERDICTS[fact.met]} |"


def _subject(subject: str, result: Result) -> Iterator[str]:
    if result.figures:
        yield f"![The ratios of the table below as bars]({picture_of(subject)})"
        yield ""
        yield from _figures(by_row(result.figures))
    if result.figures and result.facts:
        yield ""
    if result.facts:
        yield from _facts(result.facts)


def _figures(rows: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """Yield one table for rows with the same contenders: median, and quartiles in parentheses."""
    tables: dict[tuple[str, ...], list[str]] = {}
    for name, figures in rows.items():
        tables.setdefault(tuple(figure.contender for figure in figures), []).append(name)
    for number, (contenders, names) in enumerate(tables.items()):
        if number:
            yield ""
        yield from _table(contenders, [rows[name] for name in names])


def _table(contenders: Sequence[str], rows: Sequence[Sequence[Figure]]) -> Iterator[str]:
    memory = [row for row in rows if any(figure.megabytes is not None for figure in row)]
    yield "| | " + " | ".join([row[0].row for row in rows] + [f"MB, {row[0].row}" for row in memory]) + " |"
    yield "|---" * (len(rows) + len(memory) + 1) + "|"
    for place, contender in enumerate(contenders):
        cells = [_cell(row[place], baseline=place == 0) for row in rows]
        cells += [f"{row[place].megabytes or 0:,.0f}" for row in memory]
        yield f"| {contender} | " + " | ".join(cells) + " |"


def _cell(figure: Figure, *, baseline: bool) -> str:
    if baseline:
        return f"1.00 ({_duration(figure)})"
    low, high = (number_of(value) for value in (figure.ratio.low, figure.ratio.high))
    return f"{number_of(figure.ratio.median)} ({low} to {high})"


def _duration(figure: Figure) -> str:
    microseconds = (figure.cpu_us if figure.clock == "cpu" else figure.wall_us).median
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g} {unit}"
    return f"{microseconds:.3g} us"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _facts(facts: Sequence[Fact]) -> Iterator[str]:
    """Yield a table whose rows are what was counted, and whose columns are the subjects."""
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    names = list(dict.fromkeys(fact.name for fact in facts))
    values = {(fact.name, fact.subject): f"{_amount(fact.value)} {fact.unit}" for fact in facts}
    yield "| | " + " | ".join(subjects) + " |"
    yield "|---" * (len(subjects) + 1) + "|"
    for name in names:
        yield f"| {name} | " + " | ".join(values.get((name, subject), "") for subject in subjects) + " |"
