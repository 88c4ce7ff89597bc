"""The linearizability checker on random histories: atomic ones, falsified ones, and compared with brute force."""

from collections.abc import Sequence
from random import Random

import pytest

from dynashard_checks.linearizability.checker import check
from dynashard_checks.linearizability.generated import atomic_history, falsified, linearizable
from dynashard_checks.linearizability.model import Answer, Operation

pytestmark = pytest.mark.unit


def _small(seed: int) -> list[Operation]:
    """Return a history of six operations. Two of three histories have a false answer."""
    random = Random(seed)
    history = atomic_history(random, 6, clients=3, unknown=0.3, late=2.0)
    if seed % 3 and any(each.answer is not Answer.UNKNOWN for each in history):
        return falsified(random, history)
    return history


@pytest.mark.parametrize(("clients", "unknown", "late"), [(2, 0.0, 0.0), (4, 0.14, 5.0), (8, 0.3, 20.0)])
def test_the_history_of_an_atomic_register_is_always_accepted(clients: int, unknown: float, late: float) -> None:
    for seed in range(60):
        history = atomic_history(Random(seed), 60, clients=clients, unknown=unknown, late=late)

        assert check(history) is None, f"seed {seed}"


@pytest.mark.parametrize(("clients", "unknown", "least"), [(1, 0.0, 1.0), (2, 0.0, 0.85), (4, 0.14, 0.65)])
def test_one_false_answer_is_almost_always_refused(clients: int, unknown: float, least: float) -> None:
    """The other false answers are possible ones, because concurrent or unanswered operations explain them."""
    seeds = 200
    refused = 0
    for seed in range(seeds):
        random = Random(seed)
        refused += check(falsified(random, atomic_history(random, 60, clients=clients, unknown=unknown))) is not None

    assert refused >= least * seeds


def test_the_checker_agrees_with_brute_force() -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(600):
        history = _small(seed)
        accepted = check(history) is None

        assert accepted is linearizable(history), _report(seed, history)
        verdicts[accepted] += 1
    assert min(verdicts.values()) > 100


def test_a_key_with_thousands_of_operations_is_judged() -> None:
    history = atomic_history(Random(1), 2500, clients=3, unknown=0.07, late=30.0)

    assert check(history) is None


def _report(seed: int, history: Sequence[Operation]) -> str:
    return "\n".join([f"seed {seed}", *map(str, history)])
