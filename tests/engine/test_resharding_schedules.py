"""Random schedules of a change, judged against the truth about each key; `make bench-reshard` runs many more."""

from collections.abc import Iterator

import pytest

from bench.reshard import explore
from tests.resharding.wire import LeanWire, engine_in_memory

pytestmark = pytest.mark.engine

CHUNKS, CHUNK = 10, 100


@pytest.fixture(scope="module")
def engine_of_its_own() -> Iterator[LeanWire]:
    with engine_in_memory() as wire:
        yield wire


@pytest.mark.parametrize("first", range(0, CHUNKS * CHUNK, CHUNK))
def test_no_schedule_loses_doubles_or_hides_an_item(engine_of_its_own: LeanWire, first: int) -> None:
    found = explore(engine_of_its_own, range(first, first + CHUNK))

    assert found.anomalies == [], "repeat one with: python -m bench.reshard --seed N"
    assert found.schedules == CHUNK
