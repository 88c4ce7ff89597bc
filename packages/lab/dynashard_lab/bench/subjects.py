"""The subjects of a run. Each is measured in a process of its own, with an engine of its own.

What a subject leaves in memory or in the tables then costs no other one.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

from rich.console import Console

from dynashard_lab.bench.measure import Fact, Row, measure
from dynashard_lab.bench.report import Result, print_facts, print_figures
from dynashard_lab.bench.rows import (
    cold,
    direct,
    fan_out,
    growth,
    handler,
    items,
    lists,
    pages,
    scans,
    simulator,
    sizes,
    waited,
)
from dynashard_lab.bench.world import World, world

SUBJECTS: Final[Mapping[str, Callable[[World], Iterator[Row | Fact]]]] = {
    "direct": direct.rows,
    "items": items.rows,
    "lists": lists.rows,
    "waited": waited.rows,
    "engine": waited.on_the_engine,
    "fan-out": fan_out.rows,
    "pages": pages.rows,
    "scans": scans.rows,
    "cold": cold.rows,
    "handler": handler.rows,
    "growth": growth.rows,
    "sizes": sizes.rows,
    "simulator": simulator.rows,
}


def measured(subjects: Sequence[str], rounds: int, *, deep: bool = False) -> Iterator[tuple[str, Result]]:
    """Measure subjects one after the other, print each table when it is complete, and yield the result of each."""
    fresh = get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh, max_tasks_per_child=1) as process:
        for subject in subjects:
            yield subject, process.submit(_measured, subject, rounds, deep=deep).result()


def _measured(subject: str, rounds: int, *, deep: bool) -> Result:
    console = Console(width=None if sys.stdout.isatty() else 120)
    result = Result()
    with world(deep=deep) as where:
        for row in SUBJECTS[subject](where):
            if isinstance(row, Fact):
                result.facts.append(row)
                continue
            figures = measure(row, rounds=rounds)
            print_figures(console, row, figures)
            result.figures += figures
    if result.facts:
        print_facts(console, result.facts)
    return result
