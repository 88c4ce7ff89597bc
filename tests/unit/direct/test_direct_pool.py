"""The pool: the connection used last comes first, dead ones are replaced, and the number is bounded."""

import asyncio
import socket
import sys
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.transport.direct.connections import MAX_IDLE_SECONDS, Connection, ConnectionPool, ConnectionsInUseError
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.unit


class Pairs:
    """Connections whose other ends are in the test's hands, and a clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.ends: list[socket.socket] = []
        self.pool = ConnectionPool(2, lambda: self.now)

    def connection(self) -> Connection:
        """Acquire a connection and open it if it is new."""
        kept = self.pool.acquire(0.0)
        if kept is not None:
            return kept
        mine, theirs = socket.socketpair()
        self.ends.append(theirs)
        return Connection(mine, self.now, None)


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    pairs = Pairs()
    yield pairs
    pairs.pool.close()
    for end in pairs.ends:
        end.close()


def test_the_connection_used_last_is_used_next(pairs: Pairs) -> None:
    first, second = pairs.connection(), pairs.connection()
    pairs.pool.release(first)
    pairs.pool.release(second)

    assert pairs.pool.acquire(0.0) is second
    assert pairs.pool.acquire(0.0) is first


@pytest.mark.parametrize("elapsed", [MAX_IDLE_SECONDS + 1, -1.0])
def test_a_connection_that_was_idle_for_long_or_since_the_future_is_replaced(pairs: Pairs, elapsed: float) -> None:
    pairs.pool.release(pairs.connection())
    pairs.now += elapsed

    assert pairs.pool.acquire(0.0) is None


def test_a_connection_within_its_age_is_kept(pairs: Pairs) -> None:
    kept = pairs.connection()
    pairs.pool.release(kept)
    pairs.now += MAX_IDLE_SECONDS

    assert pairs.pool.acquire(0.0) is kept


def test_a_closed_connection_is_replaced(pairs: Pairs) -> None:
    pairs.pool.release(pairs.connection())
    pairs.ends[0].close()

    assert pairs.pool.acquire(0.0) is None


def test_a_connection_with_bytes_that_nobody_asked_for_is_replaced(pairs: Pairs) -> None:
    pairs.pool.release(pairs.connection())
    pairs.ends[0].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    assert pairs.pool.acquire(0.0) is None


def test_no_more_connections_than_allowed_are_open(pairs: Pairs) -> None:
    pairs.connection()
    pairs.connection()

    with pytest.raises(ConnectionsInUseError, match="all 2 connections"):
        pairs.pool.acquire(0.0)


def test_a_discarded_connection_makes_room_for_another(pairs: Pairs) -> None:
    pairs.connection()
    gone = pairs.connection()
    pairs.pool.discard(gone)

    assert pairs.pool.acquire(0.0) is None
    assert gone.socket.fileno() == -1


def test_a_caller_waits_for_a_connection_that_becomes_free(pairs: Pairs) -> None:
    pairs.connection()
    busy = pairs.connection()
    waited: list[Connection | None] = []
    begun = Event()

    def wait() -> None:
        begun.set()
        waited.append(pairs.pool.acquire(HANG_SECONDS))

    thread = Thread(target=wait)
    thread.start()
    assert begun.wait(HANG_SECONDS)
    pairs.pool.release(busy)
    until(lambda: bool(waited))
    thread.join()

    assert waited == [busy]


def test_many_threads_share_few_connections_and_none_waits_for_ever(pairs: Pairs) -> None:
    users: set[Connection] = set()
    faults: list[str] = []

    def use() -> None:
        for _ in range(200):
            try:
                kept = pairs.pool.acquire(HANG_SECONDS)
            except ConnectionsInUseError:
                faults.append("a thread waited in vain")
                return
            connection = kept or Connection(opened.pop(), pairs.now, None)
            if connection in users:
                faults.append("two threads have one connection")
            users.add(connection)
            users.remove(connection)
            pairs.pool.release(connection)

    ends = [socket.socketpair() for _ in range(2)]
    opened = [mine for mine, _ in ends]
    pairs.ends += [theirs for _, theirs in ends]
    threads = [Thread(target=use) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert not faults


def test_a_caller_who_waits_for_a_closed_pool_may_open_a_connection(pairs: Pairs) -> None:
    pairs.connection()
    busy = pairs.connection()
    waited: list[Connection | None] = []
    thread = Thread(target=lambda: waited.append(pairs.pool.acquire(HANG_SECONDS)))
    thread.start()

    pairs.pool.close()
    pairs.pool.release(busy)
    thread.join()

    assert waited == [None]


def test_callers_are_served_in_the_order_in_which_they_came(pairs: Pairs) -> None:
    held, busy = pairs.connection(), pairs.connection()
    served: list[list[Connection | None]] = [[], []]

    def waits(place: int) -> Thread:
        thread = Thread(target=lambda: served[place].append(pairs.pool.acquire(HANG_SECONDS)))
        thread.start()
        until(lambda: len(pairs.pool._queue) == place + 1)
        return thread

    first, second = waits(0), waits(1)
    pairs.pool.release(busy)
    # It belongs to the first one already, whether or not that thread has run since.
    with pytest.raises(ConnectionsInUseError):
        pairs.pool.acquire(0.0)
    first.join()
    assert served == [[busy], []]
    pairs.pool.release(held)
    second.join()

    assert served == [[busy], [held]]


def test_who_waits_may_open_a_connection_in_place_of_one_that_died(pairs: Pairs) -> None:
    held, busy = pairs.connection(), pairs.connection()
    waited: list[Connection | None] = []
    thread = Thread(target=lambda: waited.append(pairs.pool.acquire(HANG_SECONDS)))
    thread.start()
    until(lambda: bool(pairs.pool._queue))

    pairs.ends[1].close()
    pairs.pool.release(busy)
    thread.join()

    assert waited == [None]
    assert busy.socket.fileno() == -1
    with pytest.raises(ConnectionsInUseError):
        pairs.pool.acquire(0.0)
    pairs.pool.release(held)
    assert pairs.pool.acquire(0.0) is held


@pytest.mark.parametrize("served", [False, True], ids=["waits", "is served"])
def test_a_caller_that_is_cancelled_leaves_its_place_to_the_next(pairs: Pairs, *, served: bool) -> None:
    async def main() -> list[Any]:
        require_greenlet()
        held, busy = pairs.connection(), pairs.connection()
        waiting = [asyncio.ensure_future(run(pairs.pool.acquire, HANG_SECONDS)) for _ in range(2)]
        await asyncio.sleep(0)
        if served:
            pairs.pool.release(busy)
            waiting[0].cancel()
        else:
            waiting[0].cancel()
            await asyncio.sleep(0)
            pairs.pool.release(busy)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        pairs.pool.release(held)
        return [type(found[0]), found[1] is (None if served else busy)]

    assert asyncio.run(main()) == [asyncio.CancelledError, True]


def test_a_task_that_sends_one_request_after_another_leaves_turns_to_others(pairs: Pairs) -> None:
    def use(times: int) -> None:
        for _ in range(times):
            pairs.pool.release(pairs.pool.acquire(HANG_SECONDS) or Connection(socket.socket(), pairs.now, 0.0))
            done.append(times)

    async def main() -> None:
        require_greenlet()
        held, busy = pairs.connection(), pairs.connection()
        tasks = [asyncio.ensure_future(run(use, times)) for times in (9, 1)]
        await asyncio.sleep(0)
        pairs.pool.release(busy)
        await asyncio.gather(*tasks)
        pairs.pool.release(held)

    done: list[int] = []
    asyncio.run(main())

    assert done == [9, 1, *[9] * 8]


def test_a_closed_pool_keeps_no_connection(pairs: Pairs) -> None:
    idle, used = pairs.connection(), pairs.connection()
    pairs.pool.release(idle)
    pairs.pool.close()
    pairs.pool.release(used)

    assert idle.socket.fileno() == used.socket.fileno() == -1
