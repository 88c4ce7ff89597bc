"""Code that waits in a greenlet: results, errors, contexts, cancelling, and locks that it keeps while it waits."""

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Event, get_ident
from typing import Any

import pytest

from dynashard import waiting
from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.waiting import Turn, map_tasks
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.unit
require_greenlet()
VALUE: ContextVar[int] = ContextVar("value", default=0)


def test_a_function_returns_and_raises_through_the_loop() -> None:
    def work(number: int) -> int:
        waiting.sleep(0)
        if number < 0:
            raise ValueError(number)
        return number + 1

    async def main() -> list[Any]:
        return await asyncio.gather(*(run(work, each) for each in (1, -1, 3)), return_exceptions=True)

    first, second, third = asyncio.run(main())

    assert (first, str(second), third) == (2, "-1", 4)


def test_outside_of_a_loop_nothing_waits_on_one() -> None:
    async def main() -> tuple[Any, Any]:
        return waiting.current(), await asyncio.to_thread(waiting.current)

    assert (waiting.current(), *asyncio.run(main())) == (None, None, None)


def test_the_context_of_a_task_is_that_of_its_calls() -> None:
    def work(number: int) -> tuple[int, int]:
        before = VALUE.get()
        VALUE.set(number)
        waiting.sleep(0)
        return before, VALUE.get()

    async def task(number: int) -> tuple[int, int, int]:
        VALUE.set(number)
        return (*await run(work, number * 10), VALUE.get())

    async def main() -> list[tuple[int, int, int]]:
        return await asyncio.gather(*map(task, (1, 2, 3)))

    assert asyncio.run(main()) == [(1, 10, 10), (2, 20, 20), (3, 30, 30)]


def test_a_cancelled_call_runs_its_finally_blocks_which_may_wait() -> None:
    steps: list[str] = []

    def work() -> None:
        try:
            waiting.sleep(HANG_SECONDS)
        finally:
            steps.append("cancelled")
            waiting.sleep(0)
            steps.append("cleaned up")

    async def main() -> None:
        task = asyncio.ensure_future(run(work))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert steps == ["cancelled", "cleaned up"]


def test_a_coroutine_that_is_closed_ends_its_call() -> None:
    steps: list[str] = []

    def work() -> None:
        try:
            waiting.sleep(HANG_SECONDS)
        finally:
            steps.append("ended")

    async def main() -> None:
        call = run(work)
        call.send(None)
        call.close()

    asyncio.run(main())

    assert steps == ["ended"]


def test_work_in_a_thread_neither_blocks_the_loop_nor_loses_its_error() -> None:
    here, went_on = get_ident(), Event()

    def blocks() -> int:
        assert went_on.wait(HANG_SECONDS)
        return get_ident()

    def fails() -> None:
        raise KeyError("lost")

    async def main() -> None:
        call = asyncio.ensure_future(run(waiting.in_thread, blocks))
        await asyncio.sleep(0)
        went_on.set()
        assert await call != here
        with pytest.raises(KeyError, match="lost"):
            await run(waiting.in_thread, fails)

    asyncio.run(main())

    assert waiting.in_thread(get_ident) == here


def test_members_are_worked_on_by_so_many_tasks_and_the_first_error_wins() -> None:
    running: list[int] = []
    most = [0]

    def work(number: int) -> int:
        running.append(number)
        most[0] = max(most[0], len(running))
        waiting.sleep(0)
        running.remove(number)
        if number in {5, 7}:
            raise ValueError(number)
        return number

    def both() -> list[int]:
        waiter = waiting.current()
        assert waiter is not None
        assert map_tasks(waiter, work, [1, 2, 3, 4], 3) == [1, 2, 3, 4]
        return map_tasks(waiter, work, range(10), 3)

    with pytest.raises(ValueError, match="5"):
        asyncio.run(run(both))
    assert (most[0], running) == (3, [])


def test_a_turn_is_kept_while_its_holder_waits() -> None:
    turn, inside, order = Turn(), [0], list[int]()

    def work(number: int) -> None:
        with turn:
            inside[0] += 1
            assert inside[0] == 1
            waiting.sleep(0.001)
            order.append(number)
            inside[0] -= 1

    async def tasks(numbers: range) -> None:
        await asyncio.gather(*(run(work, each) for each in numbers))

    # Tasks of two loops, and threads that block.
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(asyncio.run, tasks(range(at, at + 10))) for at in (0, 10)]
        done += [pool.submit(work, each) for each in range(20, 30)]
    for each in done:
        each.result()

    assert sorted(order) == list(range(30))


@pytest.mark.parametrize("cancelled", [{1}, {1, 2}, {2, 4}, {0, 1, 2, 3}])
def test_a_turn_goes_on_to_others_when_those_before_them_are_cancelled(cancelled: set[int]) -> None:
    turn, order = Turn(), list[int]()

    def work(number: int) -> None:
        with turn:
            waiting.sleep(0.001)
            order.append(number)

    async def main() -> None:
        tasks = [asyncio.ensure_future(run(work, each)) for each in range(5)]
        await asyncio.sleep(0)
        for each in cancelled:
            tasks[each].cancel()
        async with asyncio.timeout(HANG_SECONDS):
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())

    assert set(order) == set(range(5)) - cancelled


@pytest.mark.parametrize("holds", [True, False], ids=["holds it", "waits for it"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_turn_is_free_for_others_once_the_loop_of_a_task_is_closed(*, holds: bool) -> None:
    turn, tasks = Turn(), list[Any]()

    def work() -> None:
        with turn:
            waiting.sleep(HANG_SECONDS)

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(run(work)))
        await asyncio.sleep(0)

    if not holds:
        turn.acquire()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    with ThreadPoolExecutor(1) as pool:
        after = None
        if not holds:
            after = pool.submit(turn.acquire, HANG_SECONDS)
            until(lambda: len(turn._queue) == 2)
        loop.close()
        if after is not None:
            turn.release()
            assert after.result()
        else:
            assert turn.acquire(0)


def test_a_call_keeps_nothing_alive_after_it_has_ended() -> None:
    class Held:
        pass

    def work(held: Held) -> Held:
        waiting.sleep(0)
        return held

    async def main() -> "weakref.ReferenceType[Held]":
        held = Held()
        await run(work, held)
        return weakref.ref(held)

    found = asyncio.run(main())
    gc.collect()

    assert found() is None
