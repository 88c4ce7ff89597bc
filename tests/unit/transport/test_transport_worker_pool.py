"""Parallel calls: limited in number, in order, and without deadlocks."""

from collections.abc import Iterator
from threading import Barrier, Event, Lock, current_thread, main_thread

import pytest

from dynashard.transport.interface import Call, Wire, metered, meters
from dynashard.transport.worker_pool import WorkerPool
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(7)
    yield made
    made.close()


def calls(count: int) -> list[Call]:
    return [Call("GetItem", {"number": number}) for number in range(count)]


def test_answers_come_in_the_order_of_the_calls(pool: WorkerPool) -> None:
    answers = pool.run(lambda call: {"doubled": call.request["number"] * 2}, calls(100), 5)

    assert answers == [{"doubled": number * 2} for number in range(100)]


def test_as_many_calls_as_requested_run_at_once(pool: WorkerPool) -> None:
    together = Barrier(4)
    lock = Lock()
    under_way: list[int] = []
    most = 0

    def send(call: Call) -> Wire:
        nonlocal most
        with lock:
            under_way.append(call.request["number"])
            most = max(most, len(under_way))
        together.wait(HANG_SECONDS)
        with lock:
            under_way.remove(call.request["number"])
        return {}

    pool.run(send, calls(12), 4)

    assert most == 4


def test_the_first_error_in_the_order_of_the_calls_is_raised_after_all_have_ended(pool: WorkerPool) -> None:
    ended: list[int] = []

    def send(call: Call) -> Wire:
        number = call.request["number"]
        ended.append(number)
        if number in (3, 7):
            raise ValueError(str(number))
        return {}

    with pytest.raises(ValueError, match="3"):
        pool.run(send, calls(10), 4)

    assert sorted(ended) == list(range(10))


def test_an_interruption_ends_the_calls_that_have_not_begun() -> None:
    sent: list[int] = []
    begun, ends = Barrier(3), Event()

    def send(call: Call) -> Wire:
        sent.append(call.request["number"])
        if len(sent) > 3:
            return {}
        begun.wait(HANG_SECONDS)
        if current_thread() is main_thread():
            raise KeyboardInterrupt
        ends.wait(HANG_SECONDS)
        return {}

    pool = WorkerPool(2)
    with pytest.raises(KeyboardInterrupt):
        pool.run(send, calls(100), 3)
    ends.set()
    pool.close()

    assert sorted(sent) == [0, 1, 2]


def test_calls_from_within_calls_do_not_wait_for_a_free_thread(pool: WorkerPool) -> None:
    def outer(call: Call) -> Wire:
        inner = pool.run(lambda each: dict(each.request), calls(5), 5)
        return {"outer": call.request["number"], "inner": len(inner)}

    answers = pool.run(outer, calls(40), 8)

    assert answers == [{"outer": number, "inner": 5} for number in range(40)]


def test_active_meters_of_the_caller_are_active_in_every_thread(pool: WorkerPool) -> None:
    together = Barrier(8)

    def send(_call: Call) -> Wire:
        together.wait(HANG_SECONDS)
        for meter in meters():
            meter.throttled("seen")
        return {}

    with metered() as meter:
        pool.run(send, calls(8), 8)

    assert meter.throttles == {"seen": 8}


def test_no_calls_give_no_answers(pool: WorkerPool) -> None:
    assert pool.run(lambda _: {}, [], 16) == []
