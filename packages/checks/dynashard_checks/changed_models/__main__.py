"""`python -m dynashard_checks.changed_models`: explore random schedules, and catch each mutant."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from dynashard_checks.changed_models.exploring import caught, explored
from dynashard_checks.changed_models.mutants import MUTANTS

_CHUNK = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the schedules; return 0 if none shows an anomaly and every mutant is caught."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.changed_models", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", type=int, default=2000, help="schedules of each mutant at most; 0 for none")
    asked = parser.parse_args(arguments)
    started, bad = time.monotonic(), 0
    last = asked.first + asked.schedules
    chunks = [range(at, min(at + _CHUNK, last)) for at in range(asked.first, last, _CHUNK)]
    with ProcessPoolExecutor(asked.processes) as pool:
        schedules = operations = 0
        for found in pool.map(explored, chunks):
            schedules, operations = schedules + found.schedules, operations + found.operations
            for seed, what in found.anomalies:
                bad += 1
                print(f"seed {seed}: {what}")
        print(f"{schedules:,} schedules, {operations:,} operations, {bad} anomalies")
        names = list(MUTANTS) if asked.mutants else []
        for name, by in zip(names, pool.map(partial(caught, seeds=range(asked.mutants)), names), strict=True):
            bad += by is None
            print(f"{name}: not caught" if by is None else f"{name}: caught by seed {by}")
    print(f"{time.monotonic() - started:.0f} seconds")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
