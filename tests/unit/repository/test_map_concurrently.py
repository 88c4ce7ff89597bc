"""Work that is done by several threads at a time, for callers that may be interrupted."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NoReturn

import pytest

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.repository.retry_policy import map_concurrently
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.unit


def test_an_interruption_ends_the_work_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = list[int](), Event()
    shut_down = ThreadPoolExecutor.shutdown

    def work(member: int) -> None:
        begun.append(member)
        ends.wait(HANG_SECONDS)

    def interrupted(*_: Any) -> NoReturn:
        until(lambda: len(begun) == 3)
        raise KeyboardInterrupt

    def last(pool: ThreadPoolExecutor, wait: bool = True, **more: Any) -> None:  # noqa: FBT001, FBT002 - as the original
        if wait:
            # Here the caller waits for what is under way.
            ends.set()
        shut_down(pool, wait, **more)

    monkeypatch.setattr("concurrent.futures.wait", interrupted)
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", last)
    with pytest.raises(KeyboardInterrupt):
        map_concurrently(work, range(100), 3)

    assert sorted(begun) == [0, 1, 2]


def in_threads(work: Callable[[int], int], members: Sequence[int]) -> list[int]:
    return map_concurrently(work, members, 4)


def in_tasks(work: Callable[[int], int], members: Sequence[int]) -> list[int]:
    require_greenlet()
    return asyncio.run(run(map_concurrently, work, members, 4))


@pytest.mark.parametrize("mapped", [in_threads, in_tasks], ids=["threads", "tasks"])
def test_results_are_in_the_order_of_the_members_and_the_first_error_wins(
    mapped: Callable[[Callable[[int], int], Sequence[int]], list[int]],
) -> None:
    def halved(number: int) -> int:
        if number % 2:
            raise ValueError(str(number))
        return number // 2

    assert mapped(halved, range(0, 100, 2)) == list(range(50))
    with pytest.raises(ValueError, match=r"^7$"):
        mapped(halved, [2, 7, 4, 9, 6])
