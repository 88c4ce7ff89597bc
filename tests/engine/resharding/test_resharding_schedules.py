"""Random schedules of a resize, judged against the truth about each key; `make check-reshard` runs many more."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from dynashard_checks.schedules.epochs.plan import EPOCHS
from dynashard_checks.schedules.exploring import LEVELS, caught, explore, run_mutant
from dynashard_checks.schedules.mutants import MUTANTS
from dynashard_checks.schedules.schedule import run_seed
from dynashard_checks.schedules.wire import LeanWire, engine_in_memory
from tests.depth import examples, profile
from tests.seeds import found_again

pytestmark = pytest.mark.engine

DEEP: Final = profile() == "deep"
CHUNKS, CHUNK = (20, 100) if DEEP else (1, 24)
MOST: Final = 2000
"""The number of schedules in which a mutant must be caught. The rarest shows in the 1,238th."""
CAUGHT_BY: Final[Mapping[str, int]] = {
    "no lease": 32,
    "eager mover": 291,
    "a create is sent again": 384,
    "a delete is sent again": 159,
    "a throttle after an ambiguous attempt is a refusal": 129,
    "a create finds an item, so it exists": 173,
    "a delete on a revision finds nothing, so it is done": 536,
    "a guarded delete goes on without proof": 481,
    "a transaction's refusal is final": 162,
    "a transaction's token is forgotten": 16,
    "a transaction is settled by another token": 51,
    "an epoch is confirmed before every view has it (wait)": 12,
    "an epoch is confirmed too late (early)": 106,
    "a pending epoch is not settled (settle)": 97,
    "a settled epoch is settled again (cas)": 9,
    "a view is used after its lease (lease)": 12,
    "whichever epoch is pending is settled (name)": 186,
    "owners of reservations are not guarded": 895,
    "a stray moves without checking its reservation": 1237,
    "a reservation that was taken again is taken over": 322,
    "without rule H": 36,
    "without rule P": 55,
}
"""The seeds that have caught the mutants for which a search takes long.

They are tried first by default. A schedule depends on every request, so a change of the code can make one miss its
mutant: then the search from seed 0 finds another, which belongs here.
"""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_loses_doubles_or_hides_an_item(engine_of_its_own: LeanWire, first: int) -> None:
    found = explore(engine_of_its_own, range(first, first + CHUNK))

    assert found.anomalies == [], "repeat one with: python -m dynashard_checks.schedules --seed N"
    assert found.schedules == CHUNK


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_places_a_key_by_two_epochs(engine_of_its_own: LeanWire, first: int) -> None:
    found = explore(engine_of_its_own, range(first, first + CHUNK), EPOCHS)

    assert found.anomalies == [], f"repeat one with: python -m dynashard_checks.schedules --kind {EPOCHS} --seed N"
    assert found.kinds == {EPOCHS: CHUNK}


@pytest.mark.parametrize("kind", LEVELS)
def test_no_answer_of_any_handling_is_wrong(engine_of_its_own: LeanWire, kind: str) -> None:
    found = explore(engine_of_its_own, range(examples(600)), kind)

    assert found.anomalies == [], f"repeat one with: python -m dynashard_checks.schedules --kind {kind!r} --seed N"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_code_that_breaks_the_protocol_is_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    known = [] if DEEP else [CAUGHT_BY.get(mutant, 0)]

    catch = caught(engine_of_its_own, mutant, [*known, *range(MOST)])

    assert catch is not None
    run_mutant(engine_of_its_own, catch.seed, MUTANTS[mutant])
    found_again(mutant, None if DEEP else CAUGHT_BY.get(mutant), catch.seed)


def test_a_seed_always_gives_the_same_schedule(engine_of_its_own: LeanWire) -> None:
    traces: list[list[str]] = [[], []]

    outcomes = [run_seed(engine_of_its_own, 7, trace=trace) for trace in traces]

    assert outcomes[0] == outcomes[1]
    assert [line.split()[:3] for line in traces[0]] == [line.split()[:3] for line in traces[1]]
