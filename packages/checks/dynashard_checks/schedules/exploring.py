"""`make check-reshard`: run and check random schedules of clients, movers and a controller on the real engine.

This is deterministic simulation testing: at every call to the database another actor may continue. A seed determines
the whole schedule: the resize, all operations, faults and kills. docs/proof.md says what it shows.
"""

import argparse
import gc
import json
import logging
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from dynashard_checks.processors import pin
from dynashard_checks.schedules.epochs.plan import EPOCHS, planned_epochs
from dynashard_checks.schedules.epochs.schedule import run_epochs
from dynashard_checks.schedules.epochs.unique import UNIQUE_EPOCHS, planned_unique_epochs, run_unique_epochs
from dynashard_checks.schedules.mutants import MUTANTS, Mutant, broken
from dynashard_checks.schedules.plan import planned
from dynashard_checks.schedules.schedule import Outcome, run_seed
from dynashard_checks.schedules.scheduler import AnomalyError
from dynashard_checks.schedules.unique import UNIQUE, planned_unique, run_unique
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory

LEVELS: Final = ("guarded", "exactly once")
"""Kinds of schedules for the write guarantees: no count changes, and requests may be executed at any later time."""
_CHUNK: Final = 100
_MOST_SHOWN: Final = 20
_PROGRESS_EVERY: Final = 5000
"""The number of schedules between two lines of progress."""


@dataclass
class Sum:
    """The sum of the results of some schedules."""

    schedules: int = 0
    calls: int = 0
    operations: int = 0
    listings: int = 0
    kills: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    anomalies: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: "Sum") -> None:
        """Add another sum to this one."""
        for name in ("schedules", "calls", "operations", "listings", "kills"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kinds += other.kinds
        self.anomalies += other.anomalies


def _run(wire: LeanWire, seed: int, kind: str | None, trace: list[str] | None = None) -> Outcome:
    """Run a schedule of a kind, which is drawn if it is None."""
    if kind == EPOCHS:
        return run_epochs(wire, seed, trace=trace)
    if kind == UNIQUE_EPOCHS:
        return run_unique_epochs(wire, seed, trace=trace)
    if kind == UNIQUE:
        return run_unique(wire, seed, trace=trace)
    return run_seed(wire, seed, kind=kind, late=kind in LEVELS or None, trace=trace)


def explore(wire: LeanWire, seeds: Sequence[int], kind: str | None = None) -> Sum:
    """Run the schedules of some seeds on one engine, all of one kind if it is given."""
    found = Sum()
    for seed in seeds:
        found.schedules += 1
        try:
            outcome = _run(wire, seed, kind)
        except AnomalyError as anomaly:
            found.anomalies.append((seed, str(anomaly)))
            continue
        found.kinds[outcome.kind] += 1
        for name in ("calls", "operations", "listings", "kills"):
            setattr(found, name, getattr(found, name) + getattr(outcome, name))
    return found


@dataclass(frozen=True, slots=True)
class Catch:
    """The schedule that caught a mutant: its number, its seed, and the anomaly."""

    schedules: int
    seed: int
    what: str


def run_mutant(wire: LeanWire, seed: int, mutant: Mutant) -> None:
    """Run a schedule of the kind that shows a mutant."""
    if mutant.kind == EPOCHS:
        run_epochs(wire, seed, shape=mutant.shape)
    elif mutant.kind == UNIQUE:
        run_unique(wire, seed, late=mutant.late)
    else:
        run_seed(wire, seed, kind=mutant.kind, stages=mutant.stages, late=mutant.late)


def caught(wire: LeanWire, mutant: str, seeds: Sequence[int]) -> Catch | None:
    """Return the first schedule that catches a mutant; None if none of these seeds does.

    The schedules are of the kind that shows the mutant: races at a stage of a resize, writers of one key, or epochs.
    """
    with broken(mutant):
        for number, seed in enumerate(seeds, 1):
            try:
                run_mutant(wire, seed, MUTANTS[mutant])
            except AnomalyError as anomaly:
                return Catch(number, seed, str(anomaly))
    return None


def main() -> int:
    """Run the schedules, and return 0 if there was no anomaly and every mutant was caught."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", type=int, default=4000, help="schedules of each mutant at most")
    parser.add_argument("--levels", type=int, default=5000, help="further schedules of each write guarantee")
    parser.add_argument("--epochs", type=int, default=20_000, help="further schedules of counts that grow by epochs")
    parser.add_argument("--unique", type=int, default=20_000, help="further schedules of a unique field")
    parser.add_argument("--unique-epochs", type=int, default=5000, help="further ones of both")
    parser.add_argument("--seed", type=int, help="run one schedule only, and print what happened in it")
    parser.add_argument("--kind", help="run schedules and mutants of this kind only")
    parser.add_argument("--json", type=Path, default=Path("build/reshard.json"))
    asked = parser.parse_args()
    if asked.seed is not None:
        return _traced(asked.seed, asked.kind)
    console, started = Console(), time.monotonic()
    found = Sum()
    parts = [(asked.kind, range(asked.first, asked.first + asked.schedules))]
    if asked.kind is None:
        parts += [*((level, range(asked.levels)) for level in LEVELS), (EPOCHS, range(asked.epochs))]
        parts += [(UNIQUE, range(asked.unique)), (UNIQUE_EPOCHS, range(asked.unique_epochs))]
    with ProcessPoolExecutor(asked.processes, initializer=_enter) as pool:
        variants = [
            (name, pool.submit(_caught, name, asked.mutants))
            for name, mutant in MUTANTS.items()
            if asked.mutants and asked.kind in (None, mutant.kind)
        ]
        with Progress(console=console) as progress:
            task = progress.add_task("schedules", total=sum(len(seeds) for _, seeds in parts))
            for part in pool.map(_explored, _chunks(parts)):
                found.add(part)
                progress.update(task, advance=part.schedules)
                for seed, what in part.anomalies:
                    progress.console.print(f"seed {seed}: {what}", markup=False)
                if found.schedules % _PROGRESS_EVERY == 0:
                    progress.console.print(f"{found.schedules:,} schedules, {len(found.anomalies)} anomalies")
        mutants = {name: running.result() for name, running in variants}
    report = _report(found, mutants, time.monotonic() - started)
    console.print_json(data=report)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if found.anomalies or None in mutants.values() else 0


def _report(found: Sum, mutants: dict[str, Catch | None], seconds: float) -> dict[str, Any]:
    return {
        "schedules": found.schedules,
        "anomalies": len(found.anomalies),
        "first_anomalies": [{"seed": seed, "what": what} for seed, what in found.anomalies[:_MOST_SHOWN]],
        "database_calls": found.calls,
        "operations": found.operations,
        "listings": found.listings,
        "kills": found.kills,
        "kinds": dict(found.kinds),
        "mutants": {
            name: {"caught_after": None} if catch is None else {"caught_after": catch.schedules, "by": catch.what}
            for name, catch in mutants.items()
        },
        "seconds": round(seconds),
    }


def _traced(seed: int, kind: str | None) -> int:
    trace: list[str] = []
    with engine_in_memory() as wire:
        print(_planned(seed, kind))
        try:
            _run(wire, seed, kind, trace)
        except AnomalyError as anomaly:
            trace.append(f"anomaly: {anomaly}")
            return 1
        finally:
            print("\n".join(trace))
    return 0


def _planned(seed: int, kind: str | None) -> object:
    if kind == EPOCHS:
        return planned_epochs(seed)
    if kind == UNIQUE_EPOCHS:
        return planned_unique_epochs(seed)
    return planned_unique(seed) if kind == UNIQUE else planned(seed, kind, late=kind in LEVELS or None)


def _chunks(parts: Sequence[tuple[str | None, range]]) -> Iterator[tuple[range, str | None]]:
    for kind, seeds in parts:
        yield from ((seeds[at : at + _CHUNK], kind) for at in range(0, len(seeds), _CHUNK))


_ENGINE: list[Any] = []
"""The engine of this process, which runs until the process ends."""


def _enter() -> None:
    # Each process of a schedule whose clock is off would say so.
    logging.getLogger("dynashard.clock").setLevel(logging.ERROR)
    # Numbers of the processes of a pool are consecutive.
    pin(sum(multiprocessing.current_process()._identity))
    running = engine_in_memory()
    _ENGINE.extend([running, running.__enter__()])
    gc.freeze()


def _explored(part: tuple[Sequence[int], str | None]) -> Sum:
    return explore(_ENGINE[1], *part)


def _caught(mutant: str, most: int) -> Catch | None:
    return caught(_ENGINE[1], mutant, range(most))
