"""Dynashard beside its peers, in one run: `make bench`, or `python -m bench --help`."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.measure import Figure, Row, measure
from bench.rows import items, wire
from bench.world import World, world

SUBJECTS: Final[Mapping[str, Callable[[World], Iterator[Row]]]] = {"wire": wire.rows, "items": items.rows}
DEFAULT_OUTPUT: Final = Path("build/bench.json")


def main() -> int:
    """Measure, print tables, write JSON.

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
    figures = _measured(asked.subjects or list(SUBJECTS), asked.rounds)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(
        json.dumps({"python": platform.python_version(), "figures": [figure.as_json() for figure in figures]}, indent=2)
    )
    missed = [figure for figure in figures if figure.met is False]
    for figure in missed:
        print(f"missed: {figure.row}, {figure.contender}: {figure.ratio} x, limit {figure.limit}", file=sys.stderr)
    return 1 if missed else 0


def _measured(subjects: Sequence[str], rounds: int) -> list[Figure]:
    console = Console()
    figures: list[Figure] = []
    with world() as where:
        for subject in subjects:
            for row in SUBJECTS[subject](where):
                done = measure(row, rounds=rounds)
                console.print(_table(row, done))
                figures += done
    return figures


def _table(row: Row, figures: Sequence[Figure]) -> Table:
    table = Table(title=f"{row.name} (by {'client CPU' if row.clock == 'cpu' else 'wall time'})", title_justify="left")
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
            {None: "", True: "met", False: "missed"}[figure.met],
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
