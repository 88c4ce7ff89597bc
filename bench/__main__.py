"""Compare Dynashard with its peers in one run: `make bench`, or `python -m bench --help`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.measure import Fact, Row, measure
from bench.report import Result, machine, print_facts, print_figures
from bench.rows import cold, direct, fan_out, growth, handler, items, lists, pages, scans, simulator, sizes
from bench.world import World, world

SUBJECTS: Final[Mapping[str, Callable[[World], Iterator[Row | Fact]]]] = {
    "direct": direct.rows,
    "items": items.rows,
    "lists": lists.rows,
    "fan-out": fan_out.rows,
    "pages": pages.rows,
    "scans": scans.rows,
    "cold": cold.rows,
    "growth": growth.rows,
    "sizes": sizes.rows,
    "handler": handler.rows,
    "simulator": simulator.rows,
}
DEFAULT_OUTPUT: Final = Path("build/bench.json")


def main() -> int:
    """Measure, print tables and write JSON.

    Returns:
        The exit status: 0 if every limit was met.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each contender (default 15)")
    parser.add_argument("--deep", action="store_true", help="also what takes long: a million items")
    parser.add_argument("--json", type=Path, default=DEFAULT_OUTPUT, help=f"default {DEFAULT_OUTPUT}")
    asked = parser.parse_args()
    unknown = set(asked.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    results = measured(asked.subjects or list(SUBJECTS), asked.rounds, deep=asked.deep)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "subjects": {name: result.as_json() for name, result in results.items()}}
    asked.json.write_text(json.dumps(content, indent=2) + "\n")
    missed = [line for result in results.values() for line in result.missed()]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def measured(subjects: Sequence[str], rounds: int, *, deep: bool = False) -> dict[str, Result]:
    """Measure subjects, print each table when it is complete, and return the results by subject."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    results: dict[str, Result] = {}
    with world(deep=deep) as where:
        for subject in subjects:
            result = results[subject] = Result()
            for row in SUBJECTS[subject](where):
                if isinstance(row, Fact):
                    result.facts.append(row)
                    continue
                figures = measure(row, rounds=rounds)
                print_figures(console, row, figures)
                result.figures += figures
            if result.facts:
                print_facts(console, result.facts)
    return results


if __name__ == "__main__":
    sys.exit(main())
