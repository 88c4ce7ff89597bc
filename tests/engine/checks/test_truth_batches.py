"""Outcomes of batches, transactions and edges under faults. See `python -m dynashard_checks.truth --batches`."""

from collections.abc import Sequence
from typing import Any

import pytest

from dynashard.repository.single_batches import SingleBatchWriter
from dynashard_checks.truth.batch_items import subjects
from dynashard_checks.truth.batches import OK, UNKNOWN, run_batches
from dynashard_checks.truth.proxy import Rates
from tests.depth import examples

pytestmark = pytest.mark.engine

ITEMS = examples(5000)
FAULTS = Rates(0.12, 0.19, hold=0.1, late=1.0)


def test_every_outcome_of_a_batch_is_true_for_every_entity() -> None:
    verdict = run_batches(ITEMS, size=max(5, ITEMS // 200), rates=FAULTS, seed=3)

    assert verdict.false == []
    assert verdict.items >= ITEMS
    reported = {said: sum(n for name, n in verdict.reported.items() if name.endswith(said)) for said in (OK, UNKNOWN)}
    assert min(reported.values()) > ITEMS / 50
    assert sum(verdict.faults["faults"].values()) > verdict.faults["requests"] / 5
    assert {name.partition(" ")[0] for name in verdict.reported} >= {*subjects(), "transaction", "edge"}


def test_an_outcome_that_nothing_proves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    do = SingleBatchWriter.do

    def believed(
        writer: SingleBatchWriter[Any], put: Sequence[Any], delete: Sequence[Any], **options: Any
    ) -> list[None]:
        return [None for _ in do(writer, put, delete, **options)]

    monkeypatch.setattr(SingleBatchWriter, "do", believed)

    known = {"incidents": subjects()["incidents"]}
    # Which faults meet which items depends on the threads, and of twenty runs one has no false outcome.
    verdicts = (run_batches(60, size=10, rates=FAULTS, seed=seed, known=known) for seed in range(6))

    assert any("incidents" in each for verdict in verdicts for each in verdict.false)
