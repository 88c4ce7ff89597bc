"""Leased values: one thread reads at a time, and no expired value is returned."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier, Event
from typing import Any

import pytest

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.errors import EngineUnavailableError
from dynashard.runtime import Runtime
from dynashard.topology.leases import Leases
from dynashard.transport.deadline import within
from tests.bounded_waits import refuse_endless_waits
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit

LEASE = 30.0


@dataclass
class Source:
    """A source of values with clocks that the test sets. `during` is called during a read."""

    wall: float = 1_000.0
    monotonic: float = 0.0
    reads: int = 0
    during: Callable[[], Any] = field(default=lambda: None)
    limit: int = 100

    def __post_init__(self) -> None:
        self.leases: Leases[str, str] = Leases(
            Runtime(lambda: self.wall, monotonic=lambda: self.monotonic), limit=self.limit
        )

    def read(self, now: float) -> tuple[str, float]:
        assert now == self.wall
        self.reads += 1
        number = self.reads
        self.during()
        return f"value {number}", LEASE

    def ask(self, key: str = "key") -> str:
        return self.leases.get(key, self.read)

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


def test_a_value_is_read_once_a_lease() -> None:
    source = Source()

    seen = []
    for _ in range(5):
        seen.append(source.ask())
        source.pass_time(10)

    assert seen == ["value 1", "value 1", "value 1", "value 2", "value 2"]


@pytest.mark.parametrize("keys", [("key", "key"), (1, 1 + 64)], ids=["one value", "values that share a lock"])
def test_who_waits_for_the_read_of_another_ends_at_its_deadline(
    keys: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_endless_waits(monkeypatch)
    leases: Leases[Any, str] = Leases(Runtime(), limit=100)
    reading, ended = Event(), Event()

    def slow(_: float) -> tuple[str, float]:
        reading.set()
        ended.wait(HANG_SECONDS)
        return "slow", LEASE

    def ask() -> str:
        with within(0.05):
            return leases.get(keys[1], lambda _: ("mine", LEASE))

    async def asked() -> str:
        require_greenlet()
        return await run(ask)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(leases.get, keys[0], slow)
        reading.wait(HANG_SECONDS)
        try:
            for waits in (ask, lambda: asyncio.run(asked())):
                with pytest.raises(EngineUnavailableError, match="still reading the topology at the deadline"):
                    waits()
        finally:
            ended.set()

        assert (other.result(), leases.get(keys[0], slow)) == ("slow", "slow")


def test_the_lease_counts_from_before_the_value_was_read() -> None:
    source = Source(during=lambda: source.pass_time(20))
    source.ask()

    source.pass_time(9.9)
    assert source.ask() == "value 1"
    source.pass_time(0.1)
    assert source.ask() == "value 2"


def test_a_value_that_took_longer_than_its_lease_to_read_is_read_again() -> None:
    delays = iter([31.0, 30.0, 1.0])
    source = Source(during=lambda: source.pass_time(next(delays)))

    assert source.ask() == "value 3"


def test_reads_that_always_outlast_the_lease_fail() -> None:
    source = Source(during=lambda: source.pass_time(LEASE))

    with pytest.raises(EngineUnavailableError, match="TOPOLOGY_LEASE_SECONDS"):
        source.ask()
    assert source.reads == 3


def test_the_lease_includes_time_in_which_the_process_was_frozen() -> None:
    source = Source()
    source.ask()

    source.wall += LEASE

    assert source.ask() == "value 2"


@pytest.mark.parametrize("back", [0.5, 29.0, 100_000.0])
def test_a_clock_that_is_set_back_does_not_prolong_a_lease(back: float) -> None:
    source = Source()
    source.ask()

    source.pass_time(29.5)
    source.wall -= back
    source.pass_time(0.5)

    assert source.ask() == "value 2"


def test_a_clock_that_is_set_back_in_a_frozen_process_ends_the_lease() -> None:
    source = Source()
    source.ask()

    source.wall -= 1

    assert source.ask() == "value 2"


def test_a_value_that_is_forgotten_is_read_again() -> None:
    source = Source()
    source.ask()
    source.ask("other")

    source.leases.forget("key")

    assert (source.ask("other"), source.ask()) == ("value 2", "value 3")


def test_a_value_that_is_forgotten_during_its_read_is_not_cached() -> None:
    source = Source(during=lambda: source.leases.forget("key"))
    assert source.ask() == "value 1"

    source.during = lambda: None

    assert (source.ask(), source.ask()) == ("value 2", "value 2")


def test_an_error_is_not_cached() -> None:
    failures = iter([EngineUnavailableError("lost", operation="BatchGetItem")])
    source = Source()

    def fail_once() -> None:
        for error in failures:
            raise error

    source.during = fail_once
    with pytest.raises(EngineUnavailableError, match="lost"):
        source.ask()

    assert source.ask() == "value 2"


def test_the_oldest_values_are_forgotten_beyond_the_limit() -> None:
    source = Source(limit=3)
    for key in "abc":
        source.ask(key)
    source.leases.forget("a")
    source.ask("a")

    source.ask("d")

    assert [source.ask(key) for key in "acdb"] == ["value 4", "value 3", "value 5", "value 6"]


def test_many_threads_read_a_value_once() -> None:
    threads = 16
    source, together, started = Source(), Barrier(threads), Event()
    source.during = started.set

    def ask(_: int) -> list[str]:
        together.wait()
        return [source.ask() for _ in range(50)]

    with ThreadPoolExecutor(threads) as pool:
        seen = list(pool.map(ask, range(threads)))

    assert started.is_set()
    assert source.reads == 1
    assert {value for each in seen for value in each} == {"value 1"}


def test_other_threads_wait_for_the_one_that_reads() -> None:
    source, reading, go_on = Source(), Event(), Event()

    def pause() -> None:
        reading.set()
        assert go_on.wait(HANG_SECONDS)

    source.during = pause
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(source.ask)
        assert reading.wait(HANG_SECONDS)
        second = pool.submit(source.ask)
        go_on.set()

        assert (first.result(HANG_SECONDS), second.result(HANG_SECONDS)) == ("value 1", "value 1")


def test_a_thread_that_forgets_a_value_during_a_read_gets_a_later_one() -> None:
    source, reading, go_on = Source(), Event(), Event()

    def pause_first() -> None:
        if source.reads == 1:
            reading.set()
            assert go_on.wait(HANG_SECONDS)

    def forget_and_ask() -> str:
        source.leases.forget("key")
        go_on.set()
        return source.ask()

    source.during = pause_first
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(source.ask)
        assert reading.wait(HANG_SECONDS)
        second = pool.submit(forget_and_ask)

        assert (first.result(HANG_SECONDS), second.result(HANG_SECONDS)) == ("value 1", "value 2")
