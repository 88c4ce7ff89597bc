"""Compare Dynashard with its peers in one run: `make bench`, or `python -m bench --help`."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.measure import Fact, Figure, Row, measure
from bench.rows import direct, imports, items, lists, scans, simulator, wire, work
from bench.world import World, world

SUBJECTS: Final[Mapping[str, Callable[[World], Iterator[Row | Fact]]]] = {
    "wire": wire.rows,
    "direct": direct.rows,
    "items": items.rows,
    "lists": lists.rows,
    "work": work.rows,
    "scans": scans.rows,
    "imports": imports.rows,
    "simulator": simulator.rows,
}
VERDICTS: Final[Mapping[bool | None, str]] = {None: "", True: "met", False: "missed"}
DEFAULT_OUTPUT: Final = Path("build/bench.json")


def main() -> int:
    """Measure, print tables and write JSON.

    Returns:
        The exit status: 0 if every limit was met.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each contender (default 15)")
    parser.add_argument("--json", type=Path, default=DEFAULT_OUTPUT, help=f"default {DEFAULT_OUTPUT}")
    asked = parser.parse_args()
    unknown = set(asked.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    figures, facts = _measured(asked.subjects or list(SUBJECTS), asked.rounds)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "python": platform.python_version(),
        "figures": [figure.as_json() for figure in figures],
        "facts": [fact.as_json() for fact in facts],
    }
    asked.json.write_text(json.dumps(result, indent=2) + "\n")
    missed = [f"{f.row}, {f.contender}: {f.ratio} x, limit {f.limit}" for f in figures if f.met is False]
    missed += [
        f"{f.subject}, {f.name}: {f.value:g}, limit {f.limit:g}" for f in facts if f.limit is not None and not f.met
    ]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def _measured(subjects: Sequence[str], rounds: int) -> tuple[list[Figure], list[Fact]]:
    console = Console()
    figures: list[Figure] = []
    facts: list[Fact] = []
    with world() as where:
        for subject in subjects:
            measured: list[Fact] = []
            for row in SUBJECTS[subject](where):
                if isinstance(row, Fact):
                    measured.append(row)
                    continue
                done = measure(row, rounds=rounds)
                console.print(_figures_table(row, done))
                figures += done
            if measured:
                console.print(_facts_table(measured))
                facts += measured
    return figures, facts


def _figures_table(row: Row, figures: Sequence[Figure]) -> Table:
    clock = "client CPU" if row.clock == "cpu" else "wall time"
    table = Table(title=f"{row.name} (ratio of {clock})", title_justify="left")
    table.add_column("contender", min_width=34)
    for name in ("CPU us", "wall us", "ratio", "limit", ""):
        table.add_column(name, justify="right")
    for figure in figures:
        table.add_row(
            figure.contender,
            f"{figure.cpu_us:,.0f}",
            f"{figure.wall_us:,.0f}",
            f"{figure.ratio:.2f}",
            "" if figure.limit is None else f"{figure.limit:.2f}",
            VERDICTS[figure.met],
        )
    return table


def _facts_table(facts: Sequence[Fact]) -> Table:
    table = Table()
    table.add_column("subject")
    table.add_column("what")
    for name in ("value", "limit", ""):
        table.add_column(name, justify="right")
    for fact in facts:
        limit = "" if fact.limit is None else f"{fact.limit:g}"
        table.add_row(fact.subject, fact.name, f"{fact.value:,.6g} {fact.unit}", limit, VERDICTS[fact.met])
    return table


if __name__ == "__main__":
    sys.exit(main())
