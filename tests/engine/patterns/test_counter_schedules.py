"""Random schedules of a counter whose parts become more. See `python -m dynashard_checks.schedules.counters`."""

from collections.abc import Iterator
from typing import Final

import pytest

from dynashard_checks.schedules.counters.__main__ import caught
from dynashard_checks.schedules.counters.mutants import MUTANTS
from dynashard_checks.schedules.counters.schedule import run_counter
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory
from tests.depth import profile
from tests.seeds import found_again

pytestmark = pytest.mark.engine

DEEP: Final = profile() == "deep"
CHUNKS, CHUNK = (40, 50) if DEEP else (1, 50)
MOST: Final = 400
"""The number of schedules in which a mutant must be caught."""
CAUGHT_BY: Final = {
    "readers learn of parts last": 115,
    "parts are published without waiting": 1109,
    "a late answer is believed": 338,
    "a part gives what it has not": 52,
    "a refusal is of no moment": 32,
    "a lost answer was not executed": 28,
}
"""Seeds that catch mutants for which a search takes long; if the schedules change, another one is searched for."""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_has_a_false_answer(engine_of_its_own: LeanWire, first: int) -> None:
    seeds = [*range(first, first + CHUNK), *(CAUGHT_BY.values() if first == 0 else ())]

    outcomes = [run_counter(engine_of_its_own, seed) for seed in seeds]

    assert sum(outcome.answered for outcome in outcomes) > 10 * CHUNK
    assert sum(outcome.exhausted for outcome in outcomes) > CHUNK
    assert sum(outcome.parts for outcome in outcomes) > 2 * CHUNK


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    seeds = [CAUGHT_BY[mutant]] if mutant in CAUGHT_BY else []

    catch = caught(engine_of_its_own, mutant, [*seeds, *range(MOST)])

    assert catch is not None
    found_again(mutant, CAUGHT_BY.get(mutant), catch[0])
