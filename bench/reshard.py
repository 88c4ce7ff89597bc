"""`make bench-reshard`: random schedules of clients, movers and a controller on the real engine, each judged.

Every call to the database is a point where another actor may go on. A seed says everything about a schedule: what is
changed, who does what, what fails, who is killed. See `tests/resharding` for what a schedule is and docs/proof.md for
what it shows.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from tests.resharding.mutants import MUTANTS, Mutant, broken
from tests.resharding.plan import planned
from tests.resharding.schedule import run_seed
from tests.resharding.scheduler import AnomalyError
from tests.resharding.wire import LeanWire, engine_in_memory

LEVELS: Final = ("guarded", "exactly once")
"""Kinds of schedules about the levels of care: nothing moves, and requests may be executed at any later time."""
_CHUNK: Final = 100
_MOST_SHOWN: Final = 20
_TELL: Final = 5000
"""Schedules from one line about them to the next."""


@dataclass
class Sum:
    """What some schedules have come to."""

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


def explore(wire: LeanWire, seeds: Sequence[int], kind: str | None = None) -> Sum:
    """Run the schedules of some seeds on one engine, of one kind if it is given."""
    found = Sum()
    for seed in seeds:
        found.schedules += 1
        try:
            outcome = run_seed(wire, seed, kind=kind, late=kind in LEVELS or None)
        except AnomalyError as anomaly:
            found.anomalies.append((seed, str(anomaly)))
            continue
        found.kinds[outcome.kind] += 1
        for name in ("calls", "operations", "listings", "kills"):
            setattr(found, name, getattr(found, name) + getattr(outcome, name))
    return found


@dataclass(frozen=True, slots=True)
class Catch:
    """A broken variant is caught: after how many schedules, by which seed, and with what anomaly."""

    schedules: int
    seed: int
    what: str


def run_mutant(wire: LeanWire, seed: int, mutant: Mutant) -> None:
    """Run a schedule of the kind that a broken variant shows in."""
    run_seed(wire, seed, kind=mutant.kind, stages=mutant.stages, late=mutant.late)


def caught(wire: LeanWire, mutant: str, seeds: Sequence[int]) -> Catch | None:
    """What catches a broken variant; None if none of these seeds does.

    The schedules are those that the variant concerns: races at a stage of a change, or writers of one key.
    """
    with broken(mutant):
        for number, seed in enumerate(seeds, 1):
            try:
                run_mutant(wire, seed, MUTANTS[mutant])
            except AnomalyError as anomaly:
                return Catch(number, seed, str(anomaly))
    return None


def main() -> int:
    """Explore; the exit status is 0 if there was no anomaly and every mutant was caught."""
    parser = argparse.ArgumentParser(prog="python -m bench.reshard", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mutants", type=int, default=4000, help="schedules that each broken variant gets at most")
    parser.add_argument("--levels", type=int, default=5000, help="schedules of each level of care, besides")
    parser.add_argument("--seed", type=int, help="run one schedule only, and print what happened in it")
    parser.add_argument("--kind", help="of that schedule; drawn from the seed if left out")
    parser.add_argument("--json", type=Path, default=Path("build/reshard.json"))
    asked = parser.parse_args()
    if asked.seed is not None:
        return _traced(asked.seed, asked.kind)
    console, started = Console(), time.monotonic()
    found = Sum()
    seeds = range(asked.first, asked.first + asked.schedules)
    with ProcessPoolExecutor(asked.processes, initializer=_enter) as pool:
        variants = [(name, pool.submit(_caught, name, asked.mutants)) for name in MUTANTS] if asked.mutants else []
        with Progress(console=console) as progress:
            task = progress.add_task("schedules", total=len(seeds) + len(LEVELS) * asked.levels)
            for part in pool.map(_explored, _chunks(seeds, range(asked.levels))):
                found.add(part)
                progress.update(task, advance=part.schedules)
                for seed, what in part.anomalies:
                    progress.console.print(f"seed {seed}: {what}", markup=False)
                if found.schedules % _TELL == 0:
                    progress.console.print(f"{found.schedules:,} schedules, {len(found.anomalies)} anomalies")
        mutants = {name: running.result() for name, running in variants}
    told = _told(found, mutants, time.monotonic() - started)
    console.print_json(data=told)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(told, indent=2) + "\n")
    return 1 if found.anomalies or None in mutants.values() else 0


def _told(found: Sum, mutants: dict[str, Catch | None], seconds: float) -> dict[str, Any]:
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
        print(planned(seed, kind))
        try:
            run_seed(wire, seed, kind=kind, late=kind in LEVELS or None, trace=trace)
        except AnomalyError as anomaly:
            trace.append(f"anomaly: {anomaly}")
            return 1
        finally:
            print("\n".join(trace))
    return 0


def _chunks(seeds: range, of_levels: range) -> Iterator[tuple[range, str | None]]:
    for kind, some in ((None, seeds), *((level, of_levels) for level in LEVELS)):
        yield from ((some[at : at + _CHUNK], kind) for at in range(0, len(some), _CHUNK))


_KEPT: list[Any] = []
"""The engine of this process, for as long as it lives."""


def _enter() -> None:
    running = engine_in_memory()
    _KEPT.extend([running, running.__enter__()])
    gc.freeze()


def _explored(part: tuple[Sequence[int], str | None]) -> Sum:
    return explore(_KEPT[1], *part)


def _caught(mutant: str, most: int) -> Catch | None:
    return caught(_KEPT[1], mutant, range(most))


if __name__ == "__main__":
    sys.exit(main())
