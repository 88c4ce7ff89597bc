"""Answers about items placed by epochs, while counts change and clocks are off; see `make check-truth`."""

import pytest

from dynashard.schema import PK, SK
from dynashard_checks.schedules.wire import TABLE, engine_in_memory, scanned
from dynashard_checks.truth.epochs import MODELS, run_epochs
from tests.depth import examples

pytestmark = pytest.mark.engine

OPERATIONS = examples(6000)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("level", MODELS)
def test_every_answer_is_true_while_counts_grow_and_clocks_are_off(level: str) -> None:
    verdict = run_epochs(OPERATIONS, level=level, clients=5, seed=3)

    assert verdict.violations == []
    assert verdict.strange == []
    assert verdict.operations >= OPERATIONS / 2
    assert verdict.keys > 0
    assert verdict.off_accepted == 0
    assert verdict.off_refused > 0
    assert {"lost", "late", "throttled"} <= verdict.engine["faults"].keys()
    assert verdict.engine["requests"] > OPERATIONS


@pytest.mark.deep
def test_counts_grow_meanwhile() -> None:
    verdict = run_epochs(4000, clients=5, seed=4)

    assert verdict.violations == []
    assert verdict.epochs["confirmed"] > 0
    assert verdict.by_later > 0


def test_all_that_is_stored_is_judged_however_much_it_is() -> None:
    with engine_in_memory() as wire:
        for number in range(5):
            item = {PK: {"S": f"p{number}"}, SK: {"S": "s"}, "text": {"S": "x" * 300_000}}
            wire.call("PutItem", {"TableName": TABLE, "Item": item})

        assert len(list(scanned(wire, TABLE))) == 5
