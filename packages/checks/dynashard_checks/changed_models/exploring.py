"""Runs schedules of many seeds, and finds the seed that catches a mutant."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dynashard_checks.changed_models.mutants import broken
from dynashard_checks.changed_models.schedule import run_seed
from dynashard_checks.schedules.scheduler import AnomalyError
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory


@dataclass
class Explored:
    """What some schedules have shown: how many there were, their operations, and anomalies by seed."""

    schedules: int = 0
    operations: int = 0
    anomalies: list[tuple[int, str]] = field(default_factory=list)


def explore(wire: LeanWire, seeds: Sequence[int]) -> Explored:
    """Run the schedules of some seeds on one engine."""
    found = Explored()
    for seed in seeds:
        found.schedules += 1
        try:
            found.operations += run_seed(wire, seed)
        except AnomalyError as anomaly:
            found.anomalies.append((seed, str(anomaly)))
    return found


def catch(wire: LeanWire, mutant: str, seeds: Sequence[int]) -> int | None:
    """Return the first seed whose schedule catches a mutant; None if there is none."""
    with broken(mutant):
        for seed in seeds:
            try:
                run_seed(wire, seed)
            except AnomalyError:
                return seed
    return None


def explored(seeds: Sequence[int]) -> Explored:
    """Run schedules on an engine of their own."""
    with engine_in_memory() as wire:
        return explore(wire, seeds)


def caught(mutant: str, seeds: Sequence[int]) -> int | None:
    """Return what `catch` does, on an engine of its own."""
    with engine_in_memory() as wire:
        return catch(wire, mutant, seeds)
