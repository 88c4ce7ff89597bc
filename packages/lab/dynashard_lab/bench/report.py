"""What a run prints and writes: tables for a terminal, and the result as JSON."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from dynashard_lab.bench.measure import Fact, Figure, Row

VERDICTS: Final[Mapping[bool | None, str]] = {None: "", True: "met", False: "missed"}


@dataclass(slots=True)
class Result:
    """The figures and facts of a subject, in the order in which they were measured."""

    figures: list[Figure] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "figures": [figure.as_json() for figure in self.figures],
            "facts": [fact.as_json() for fact in self.facts],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Result":
        """Return a result that was written as JSON."""
        return cls(
            [Figure.from_json(figure) for figure in content["figures"]],
            [Fact.from_json(fact) for fact in content["facts"]],
        )

    def missed(self) -> list[str]:
        """Return a line for each limit that was missed."""
        lines = [
            f"{each.row}, {each.contender}: {each.limited:g} x, limit {each.limit:g}"
            for each in self.figures
            if each.met is False
        ]
        return lines + [
            f"{each.subject}, {each.name}: {each.value:g} {each.unit}, limit {each.limit:g}"
            for each in self.facts
            if each.limit is not None and not each.met
        ]


def machine() -> dict[str, Any]:
    """Return what the figures depend on: the processors, the system and Python's version."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def print_figures(console: Console, row: Row, figures: Sequence[Figure]) -> None:
    """Print the table of a row."""
    clock = "client CPU" if row.clock == "cpu" else "wall time"
    table = Table(title=f"{row.name} (ratio of {clock})", title_justify="left")
    table.add_column("contender", min_width=34)
    memory = any(figure.megabytes is not None for figure in figures)
    for name in ("CPU us", "wall us", "ratio", "quartiles", *(["MB"] if memory else []), "limit", ""):
        table.add_column(name, justify="right")
    for figure in figures:
        table.add_row(
            figure.contender,
            f"{figure.cpu_us.median:,.0f}",
            f"{figure.wall_us.median:,.0f}",
            f"{figure.ratio.median:.3f}",
            f"{figure.ratio.low:.3f} to {figure.ratio.high:.3f}",
            *([f"{figure.megabytes:,.0f}" if figure.megabytes is not None else ""] if memory else []),
            limit_of(figure),
            VERDICTS[figure.met],
        )
    console.print(table)


def print_facts(console: Console, facts: Sequence[Fact]) -> None:
    """Print a table of facts."""
    table = Table()
    table.add_column("subject")
    table.add_column("what")
    for name in ("value", "limit", ""):
        table.add_column(name, justify="right")
    for fact in facts:
        limit = "" if fact.limit is None else f"{fact.limit:g}"
        table.add_row(fact.subject, fact.name, f"{fact.value:,.6g} {fact.unit}", limit, VERDICTS[fact.met])
    console.print(table)


def limit_of(figure: Figure) -> str:
    """Return the limit of a figure as text; empty without one."""
    if figure.limit is None:
        return ""
    text = f"{figure.limit:.2f}" + (f" x {figure.limit_to}" if figure.limit_to else "")
    return text if figure.most_megabytes is None else f"{text}, {figure.most_megabytes:g} MB"
