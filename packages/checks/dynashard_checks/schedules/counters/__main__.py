"""`python -m dynashard_checks.schedules.counters`: explore random schedules of a counter, and mutants of its rules."""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from dynashard_checks.schedules.counters.mutants import MUTANTS
from dynashard_checks.schedules.counters.schedule import Outcome, run_counter
from dynashard_checks.schedules.scheduler import AnomalyError
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory

_CHUNK: Final = 50


def explored(seeds: Sequence[int]) -> tuple[list[Outcome], list[tuple[int, str]]]:
    """Run the schedules of some seeds; return their outcomes, and their anomalies."""
    found: list[Outcome] = []
    anomalies: list[tuple[int, str]] = []
    with engine_in_memory() as wire:
        for seed in seeds:
            try:
                found.append(run_counter(wire, seed))
            except AnomalyError as anomaly:
                anomalies.append((seed, str(anomaly)))
    return found, anomalies


def caught(wire: LeanWire, mutant: str, seeds: Sequence[int]) -> tuple[int, str] | None:
    """Return the first seed that catches a mutant, and the anomaly; None if none of these does."""
    with ExitStack() as stack:
        MUTANTS[mutant](stack)
        for seed in seeds:
            try:
                run_counter(wire, seed)
            except AnomalyError as anomaly:
                return seed, str(anomaly)
    return None


def _caught(most: int, mutant: str) -> tuple[int, str] | None:
    with engine_in_memory() as wire:
        return caught(wire, mutant, range(most))


def main() -> int:
    """Run the schedules; return 0 if there was no anomaly and every mutant was caught."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.schedules.counters", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", type=int, default=2000, help="schedules of each mutant at most")
    parser.add_argument("--seed", type=int, help="run one schedule only, and print what happened in it")
    parser.add_argument("--json", type=Path, default=Path("build/counters.json"))
    asked = parser.parse_args()
    if asked.seed is not None:
        return _traced(asked.seed)
    logging.disable(logging.WARNING)
    started, seeds = time.monotonic(), range(asked.first, asked.first + asked.schedules)
    outcomes: list[Outcome] = []
    anomalies: list[tuple[int, str]] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        for some, wrong in pool.map(explored, [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]):
            outcomes += some
            anomalies += wrong
            for seed, what in wrong:
                print(f"seed {seed}: {what}", flush=True)
        names = list(MUTANTS) if asked.mutants else []
        mutants = dict(zip(names, pool.map(partial(_caught, asked.mutants), names), strict=True))
    report: dict[str, Any] = {
        "schedules": len(outcomes) + len(anomalies),
        "anomalies": anomalies,
        "operations": sum(each.operations for each in outcomes),
        "answered": sum(each.answered for each in outcomes),
        "exhausted": sum(each.exhausted for each in outcomes),
        "database_calls": sum(each.calls for each in outcomes),
        "mutants": mutants,
        "seconds": round(time.monotonic() - started),
    }
    print(json.dumps(report, indent=2))
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if anomalies or None in mutants.values() else 0


def _traced(seed: int) -> int:
    trace: list[str] = []
    with engine_in_memory() as wire:
        try:
            run_counter(wire, seed, trace=trace)
        except AnomalyError as anomaly:
            trace.append(f"anomaly: {anomaly}")
            return 1
        finally:
            print("\n".join(trace))
    return 0


if __name__ == "__main__":
    sys.exit(main())
