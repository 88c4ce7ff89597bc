"""Compare Dynashard with its peers in one run: `make bench`, or `python -m dynashard_lab.bench --help`."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dynashard_lab.bench.agreement import differences
from dynashard_lab.bench.check import falls, in_both
from dynashard_lab.bench.clients.interface import CLIENTS
from dynashard_lab.bench.contenders import installed
from dynashard_lab.bench.page import COMMITTED, Run, write_page
from dynashard_lab.bench.report import Result, machine
from dynashard_lab.bench.subjects import SUBJECTS, measured

DEFAULT_ROUNDS: Final = 15
DEFAULT_OUTPUT: Final = Path("build/bench.json")


def main() -> int:
    """Measure, print tables and write JSON. Compare with the committed figures, or replace them, if that is asked for.

    Returns:
        The exit status: 0 if every limit was met; with `--check`, 0 if nothing fell.
    """
    asked = _arguments()
    run = Run.read(asked.read) if asked.read else _run(asked)
    if asked.write:
        if lost := SUBJECTS.keys() - run.results.keys():
            sys.exit(f"{asked.read} has no figures of {', '.join(sorted(lost))}; nothing was written")
        write_page(run)
    missed = [line for result in run.results.values() for line in result.missed()]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    if asked.check:
        return _checked(run, asked)
    return 1 if missed else 0


def _run(asked: argparse.Namespace) -> Run:
    """Measure, and write the run whenever a subject is complete, so that an end before the last one loses little.

    Ends the process if clients do different work, because their ratios would mean nothing.
    """
    if different := list(differences(installed(list(CLIENTS)))):
        sys.exit("\n".join(["these clients do other work than botocore:", *different]))
    results: dict[str, Result] = {}
    run = Run(machine(), _command(asked), datetime.now(UTC).date().isoformat(), results)
    for subject, result in measured(asked.subjects or list(SUBJECTS), asked.rounds, deep=asked.deep):
        results[subject] = result
        run.write(asked.json)
    return run


def _command(asked: argparse.Namespace) -> str:
    """Return the command that measures the same again."""
    rounds = [] if asked.rounds == DEFAULT_ROUNDS else [f"--rounds {asked.rounds}"]
    return " ".join(["python -m dynashard_lab.bench", *asked.subjects, *rounds, *(["--deep"] if asked.deep else [])])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dynashard_lab.bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)} (default: all)")
    parser.add_argument(
        "--rounds", type=int, default=DEFAULT_ROUNDS, help=f"samples of each contender (default {DEFAULT_ROUNDS})"
    )
    parser.add_argument("--deep", action="store_true", help="also what takes long: a million items")
    parser.add_argument("--json", type=Path, default=DEFAULT_OUTPUT, help=f"default {DEFAULT_OUTPUT}")
    parser.add_argument("--read", type=Path, help="take the figures of this file instead of measuring")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail if a ratio of ours is more than 15%% above committed, a row is missing, or a limit was raised",
    )
    parser.add_argument("--write", action="store_true", help="write docs/performance.md, its pictures and its figures")
    asked = parser.parse_args()
    unknown = set(asked.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    if asked.write and asked.subjects:
        parser.error("--write needs all subjects, because the page names one machine and one day")
    if asked.write and asked.check:
        parser.error("--write replaces the figures that --check compares with; do one after the other")
    return asked


def _checked(run: Run, asked: argparse.Namespace) -> int:
    """Compare with the committed figures. What fell is measured once more, and must have fallen both times."""
    committed = Run.read(COMMITTED).results
    fallen = falls(committed, run.results, asked.subjects or list(committed))
    again = sorted({fall.subject for fall in fallen} & set(run.results))
    if again and not asked.read:
        print("measured again, because figures fell:", *again, file=sys.stderr)
        second = {**run.results, **dict(measured(again, asked.rounds, deep=asked.deep))}
        fallen = in_both(fallen, falls(committed, second, asked.subjects or list(committed)))
    for fall in fallen:
        print(f"fallen: {fall}", file=sys.stderr)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
