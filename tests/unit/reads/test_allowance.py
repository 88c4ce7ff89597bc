"""The limit of Queries for one request."""

from collections.abc import Iterator
from contextvars import copy_context
from threading import Thread

import pytest

from dynashard.errors import InvalidQueryError, QueryTooWideError
from dynashard.reads.allowance import UNBOUNDED, Allowance, allowing, current_allowance

pytestmark = pytest.mark.unit


def ticking(*times: float) -> Iterator[float]:
    yield from times


def test_units_can_be_taken_once() -> None:
    allowance = Allowance(10)

    allowance.take(7)
    with pytest.raises(
        QueryTooWideError, match="this takes 4 Queries, and one request may send 10 and has sent 7 already"
    ) as refused:
        allowance.take(4)
    allowance.take(3)

    assert allowance.left == 0
    assert isinstance(refused.value, InvalidQueryError)


def test_an_allowance_ends_with_its_time() -> None:
    times = ticking(100.0, 104.9, 105.0)
    allowance = Allowance(10, 5.0, clock=lambda: next(times))

    assert [allowance.over, allowance.over] == [False, True]


def test_nested_calls_and_threads_share_one_allowance() -> None:
    with allowing(10) as opened:
        current_allowance().take(4)
        thread = Thread(target=copy_context().run, args=(lambda: current_allowance().take(5),))
        thread.start()
        thread.join()

    assert opened.left == 1
    assert current_allowance().queries == UNBOUNDED


def test_threads_that_take_at_once_never_take_more_than_there_is() -> None:
    allowance = Allowance(500)
    refused = []

    def take() -> None:
        for _ in range(200):
            try:
                allowance.take(1)
            except QueryTooWideError:
                refused.append(1)

    threads = [Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (allowance.left, len(refused)) == (0, 300)
