"""How many functions an operation calls: a measure of the client's work that a busy machine does not change.

`make bench` measures what users wait for, but only on demand, and its noise hides some percent. A dozen calls more
for each key were found here, and not there.
"""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from dynashard_lab.bench.canned import CannedAnswers, canned_server
from dynashard_lab.bench.clients.interface import DIRECT, Client, load
from dynashard_lab.bench.stored import BATCH, PAGE

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with canned_server(CannedAnswers()) as url:
        client = load(DIRECT, url)
        yield client
        client.close()


def calls_of(run: Callable[[], object]) -> int:
    """Return how many functions a run calls at least, those in C included, once its caches are filled."""
    return min(_counted(run) for _ in range(5))


def _counted(run: Callable[[], object]) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


# Those of Python 3.11 and a few more. Later versions call less, because they have no calls for comprehensions.
@pytest.mark.parametrize(
    ("operation", "most"),
    [
        ("get", 180),
        ("put", 275),
        ("update", 270),
        ("batch_write", 75 * BATCH),
        ("batch_get", 39 * PAGE),
        ("page", 18 * PAGE),
        ("index", 20 * PAGE),
        ("three_fields", 9 * PAGE),
    ],
)
def test_an_operation_calls_few_functions(client: Client, operation: str, most: int) -> None:
    calls = calls_of(getattr(client, operation))

    assert most / 2 < calls <= most
