"""Random schedules of an entity with a unique field: resizes, kills, lost answers, values that many want."""

from collections.abc import Iterator
from typing import Final

import pytest

from dynashard_checks.schedules.epochs.unique import run_unique_epochs
from dynashard_checks.schedules.exploring import caught
from dynashard_checks.schedules.unique import run_unique
from dynashard_checks.schedules.unique_mutants import LATE_UNIQUE_MUTANTS, UNIQUE_MUTANTS
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory
from tests.depth import profile
from tests.seeds import found_again

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

DEEP: Final = profile() == "deep"
CHUNKS, CHUNK = (200, 100) if DEEP else (1, 25)
MOST: Final = 300
"""The number of schedules in which a mutant must be caught."""
CAUGHT_BY: Final = {
    "owners of reservations are not guarded": 895,
    "a stray moves without checking its reservation": 1237,
    "a reservation that was taken again is taken over": 322,
}
"""Seeds that catch mutants for which a search takes long; if the schedules change, another one is searched for."""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_gives_a_value_to_two_items(engine_of_its_own: LeanWire, first: int) -> None:
    outcomes = [run_unique(engine_of_its_own, seed) for seed in range(first, first + CHUNK)]

    assert sum(outcome.operations - outcome.gave_up for outcome in outcomes) > CHUNK


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK // 2, CHUNK // 2))
def test_no_schedule_gives_a_value_to_two_items_of_any_epochs(engine_of_its_own: LeanWire, first: int) -> None:
    outcomes = [run_unique_epochs(engine_of_its_own, seed) for seed in range(first, first + CHUNK // 2)]

    assert sum(outcome.operations - outcome.gave_up for outcome in outcomes) > CHUNK


def test_an_item_that_had_expired_before_it_was_written_counts_as_absent(engine_of_its_own: LeanWire) -> None:
    # A put waits until its item has expired, and a delete reads while its transaction becomes visible.
    assert run_unique(engine_of_its_own, 10_022).operations > 0


def test_an_item_that_expires_when_a_schedule_ends_may_have_lost_its_value(engine_of_its_own: LeanWire) -> None:
    assert run_unique(engine_of_its_own, 7217).operations > 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", [*UNIQUE_MUTANTS, *LATE_UNIQUE_MUTANTS])
def test_a_broken_rule_is_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    seeds = [CAUGHT_BY[mutant]] if mutant in CAUGHT_BY else []

    catch = caught(engine_of_its_own, mutant, [*seeds, *range(MOST)])

    assert catch is not None
    found_again(mutant, CAUGHT_BY.get(mutant), catch.seed)
