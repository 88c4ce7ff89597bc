"""Random schedules of two versions, backfills and resizes: `python -m dynashard_checks.changed_models` runs more."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from dynashard_checks.changed_models.exploring import catch, explore
from dynashard_checks.changed_models.mutants import MUTANTS
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory
from tests.depth import profile
from tests.seeds import found_again

pytestmark = pytest.mark.engine

SCHEDULES: Final = 2000 if profile() == "deep" else 12
MOST: Final = 400
CAUGHT_BY: Final[Mapping[str, int]] = {
    "items that move during a backfill are not looked for": 21,
    "a migration writes over what was written since it read": 34,
    "an index build writes keys of fields that have changed": 92,
    "a backfill that was killed counts as complete": 259,
}
"""Seeds that have caught the mutants for which a search takes long. They are tried first."""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.timeout(7200)
def test_no_schedule_shows_a_wrong_item_or_a_listing_that_lacks_one(engine_of_its_own: LeanWire) -> None:
    found = explore(engine_of_its_own, range(SCHEDULES))

    assert found.anomalies == []
    assert found.schedules == SCHEDULES


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    known = CAUGHT_BY.get(mutant)

    found = catch(engine_of_its_own, mutant, [known or 0, *range(MOST)])

    assert found is not None
    found_again(mutant, known, found)
