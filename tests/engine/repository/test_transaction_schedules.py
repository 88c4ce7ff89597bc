"""Random schedules of a resize with transactions among the operations, judged against the truth about each key."""

from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest.mock import patch

import pytest

from dynashard.repository import late
from dynashard.repository.phase_table import Next
from dynashard.transactions import participant
from dynashard.transactions.participant import Participant
from dynashard_checks.schedules.scheduler import AnomalyError
from dynashard_checks.schedules.transactions import run_transactions
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory
from tests.depth import profile
from tests.seeds import found_again

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

DEEP: Final = profile() == "deep"
CHUNKS, CHUNK = (10, 30) if DEEP else (1, 12)
MOST: Final = 300
"""The number of schedules in which a mutant must be caught."""
CAUGHT_BY: Final = {"steps stay at old": 51}
"""Seeds that catch mutants for which a search takes long: see test_resharding_schedules.py."""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_splits_doubles_or_loses_a_transaction(engine_of_its_own: LeanWire, first: int) -> None:
    outcomes = [run_transactions(engine_of_its_own, seed) for seed in range(first, first + CHUNK)]

    assert sum(outcome.operations - outcome.gave_up for outcome in outcomes) > CHUNK


def _unmarked_creates(table: str, write: Any, places: Any) -> list[Any]:
    """Mutant: a create at the new home leaves no marker at the old one."""
    return [write.action(table, places.new, write.absent_condition())]


def _never_followed(*refused: Any) -> Next:
    """Mutant: a marker is treated as a missing item."""
    found = late.next_after(*refused)
    return Next.DECIDE if found is Next.FOLLOW else found


def _always_old(self: Participant) -> list[Any]:
    """Mutant: steps use the old place in every phase."""
    prepared = self.prepared
    self._places = self._store.router.places(self.writes.entity, self.writes.key)
    return [prepared.write.action(self._store.table, self._places.old, prepared.write.direct_condition())]


MUTANTS: dict[str, Callable[[], Any]] = {
    "creates without marks": lambda: patch.object(participant, "create_with_marker", _unmarked_creates),
    "marks are not followed": lambda: patch.object(participant, "next_after", _never_followed),
    "steps stay at old": lambda: patch.object(Participant, "actions", _always_old),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_transactions_that_break_the_protocol_are_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    caught = None
    known = [] if DEEP else [CAUGHT_BY.get(mutant, 0)]
    with MUTANTS[mutant]():
        for seed in [*known, *range(MOST)]:
            try:
                run_transactions(engine_of_its_own, seed)
            except (AnomalyError, AssertionError) as anomaly:
                caught = seed, anomaly
                break

    assert caught is not None
    run_transactions(engine_of_its_own, caught[0])
    found_again(mutant, None if DEEP else CAUGHT_BY.get(mutant), caught[0])
