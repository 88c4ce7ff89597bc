"""Answers of the API under faults, judged by a linearizability checker. See `make check-truth`."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dynashard.transport import Transport, connect
from dynashard_checks.truth import api_clients
from dynashard_checks.truth.api_clients import FunctionClient, Reply, app_on
from dynashard_checks.truth.counter import Count, count_together
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.running import Plan, run_in_process
from dynashard_checks.truth.world import FaultyEngine, create_api_tables, faulty_engine
from tests.depth import examples
from tests.roles import as_function

pytestmark = pytest.mark.engine

OPERATIONS = examples(6000)
INCREMENTS = 10


@pytest.fixture(autouse=True)
def _role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what the role of the API lacks."""

    def allowed(*arguments: Any, **options: Any) -> Transport:
        return as_function("api", connect(*arguments, **options), *api_clients.TABLES)

    monkeypatch.setattr(api_clients, "connect", allowed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("level", ["plain", "guarded", "exactly-once"])
def test_every_answer_is_true_while_answers_are_lost_and_requests_run_late(level: str) -> None:
    verdict, engine = run_in_process(Plan(OPERATIONS, level, processes=1, threads=8, seed=3, increments=5))

    assert verdict.violations == []
    assert verdict.counter is not None
    assert verdict.counter.exact
    assert verdict.strange == []
    assert verdict.baseless == []
    assert verdict.ambiguous.total() > OPERATIONS / 50
    assert verdict.listings > 0
    assert verdict.refusals_with_revision > 0
    assert {"lost", "answer_lost", "late", "throttled", "damaged", "reset"} <= engine["faults"].keys()


@pytest.fixture
def failing() -> Iterator[FaultyEngine]:
    with faulty_engine(5) as engine:
        create_api_tables(engine.wire)
        yield engine


def _counted(engine: FaultyEngine, **more: Any) -> Count:
    app = app_on(engine.endpoint)
    engine.fail(Rates(lost=0.05))
    return count_together(lambda: FunctionClient(app), increments=INCREMENTS, **more)


def test_a_counter_of_ten_writers_is_exact_while_answers_are_lost(failing: FaultyEngine) -> None:
    count = _counted(failing)

    assert count.found == count.wanted == 10 * INCREMENTS
    assert count.unknown > 0


class Stranger(FunctionClient):
    """A client of no tenant, whose requests are all refused."""

    def send(self, tenant: str, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:  # noqa: ARG002 - sends none
        return super().send("", method, path, body, headers)


def test_a_run_whose_requests_are_refused_ends_and_says_why(failing: FaultyEngine) -> None:
    app = app_on(failing.endpoint)

    with pytest.raises(RuntimeError, match="the counter is not stored: 40"):
        count_together(lambda: Stranger(app), increments=INCREMENTS)
