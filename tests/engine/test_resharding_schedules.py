"""Random schedules of a change, judged against the truth about each key; `make bench-reshard` runs many more."""

from collections.abc import Iterator

import pytest

from bench.reshard import caught, explore, run_mutant
from tests.depth import examples
from tests.resharding.mutants import MUTANTS
from tests.resharding.schedule import run_seed
from tests.resharding.wire import LeanWire, engine_in_memory

pytestmark = pytest.mark.engine

CHUNKS, CHUNK = examples(20), 100
MOST = 1000
"""Schedules in which a mutant must be caught; each is within the first hundred or so."""


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_loses_doubles_or_hides_an_item(engine_of_its_own: LeanWire, first: int) -> None:
    found = explore(engine_of_its_own, range(first, first + CHUNK))

    assert found.anomalies == [], "repeat one with: python -m bench.reshard --seed N"
    assert found.schedules == CHUNK


@pytest.mark.parametrize("mutant", MUTANTS)
def test_code_that_breaks_the_protocol_is_caught(engine_of_its_own: LeanWire, mutant: str) -> None:
    catch = caught(engine_of_its_own, mutant, range(MOST))

    assert catch is not None
    run_mutant(engine_of_its_own, catch.seed, MUTANTS[mutant])


def test_a_seed_always_gives_the_same_schedule(engine_of_its_own: LeanWire) -> None:
    traces: list[list[str]] = [[], []]

    outcomes = [run_seed(engine_of_its_own, 7, trace=trace) for trace in traces]

    assert outcomes[0] == outcomes[1]
    assert [line.split()[:3] for line in traces[0]] == [line.split()[:3] for line in traces[1]]
