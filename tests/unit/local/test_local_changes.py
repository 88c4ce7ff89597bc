"""The local stream consumer delivers records again as Lambda does, and keeps its position."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_local.workers.stream import Positions, Record
from dynashard_local.workers.stream_consumer import ATTEMPTS, BATCH, StreamConsumer

pytestmark = pytest.mark.unit

SHARD = "shardId-1"


def sequence(number: int) -> str:
    return str(number).zfill(21)


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


class Records:
    """A stream of numbered records in one shard."""

    def __init__(self, count: int) -> None:
        self._numbers = range(1, count + 1)

    def shards(self) -> list[str]:
        return [SHARD]

    def after(self, shard: str, at: str | None, limit: int) -> list[Record]:
        assert shard == SHARD
        found = [{"dynamodb": {"SequenceNumber": sequence(n)}} for n in self._numbers if at is None or sequence(n) > at]
        return found[:limit]


class World:
    """A stream consumer, the records that its function got, and those that were given up."""

    def __init__(self, count: int, handle: Callable[[list[int]], int | None], path: Path | None = None) -> None:
        self.given: list[list[int]] = []
        self.given_up: list[int] = []
        self.slept: list[float] = []
        self._handle = handle
        places: Any = Positions(path, "arn") if path else _Memory()
        stream: Any = Records(count)
        self.consumer = StreamConsumer(stream, places, self._answer, self._give_up, self.slept.append, lambda _: None)

    def _answer(self, event: dict[str, Any]) -> dict[str, Any]:
        self.given.append([int(record["dynamodb"]["SequenceNumber"]) for record in event["Records"]])
        failed = self._handle(self.given[-1])
        return {"batchItemFailures": [] if failed is None else [{"itemIdentifier": sequence(failed)}]}

    def _give_up(self, record: Record, reason: str) -> None:
        assert reason
        self.given_up.append(int(record["dynamodb"]["SequenceNumber"]))


class _Memory(dict[str, str]):
    def __missing__(self, _: str) -> None:
        return None


def test_all_records_are_delivered_in_order_and_in_batches() -> None:
    world = World(250, lambda _: None)

    assert world.consumer.poll() == 250
    assert [len(batch) for batch in world.given] == [BATCH, BATCH, 50]
    assert flat(world.given) == list(range(1, 251))
    assert world.consumer.poll() == 0


def test_a_batch_is_delivered_again_from_the_failed_record() -> None:
    failures = iter([7, None])
    world = World(10, lambda _: next(failures, None))

    world.consumer.poll()

    assert world.given[0] == list(range(1, 11))
    assert flat(world.given[1:]) == [7, 8, 9, 10]
    assert (world.given_up, len(world.slept)) == ([], 1)


def test_only_a_record_that_never_succeeds_is_given_up() -> None:
    world = World(20, lambda batch: 5 if 5 in batch else None)

    assert world.consumer.poll() == 20

    assert world.given_up == [5]
    assert len(world.slept) == ATTEMPTS - 1
    assert set(flat(world.given)) == set(range(1, 21))


def test_a_failed_function_is_called_again() -> None:
    falls = iter([True, True, False])

    def fall(_: list[int]) -> None:
        if next(falls, False):
            raise RuntimeError("out of memory")

    world = World(4, fall)

    assert (world.consumer.poll(), world.given_up) == (4, [])


def test_an_answer_with_an_unknown_record_repeats_the_whole_batch() -> None:
    answers = iter([99, None])
    world = World(3, lambda _: next(answers, None))

    world.consumer.poll()

    assert world.given[0] == [1, 2, 3]
    assert set(flat(world.given[1:])) == {1, 2, 3}


def test_a_killed_consumer_continues_at_its_stored_position(tmp_path: Path) -> None:
    def killed(batch: list[int]) -> int | None:
        if batch[0] > BATCH:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        World(250, killed, tmp_path / "places.json").consumer.poll()
    again = World(250, lambda _: None, tmp_path / "places.json")
    again.consumer.poll()

    assert again.given[0][0] == BATCH + 1
    assert flat(again.given) == list(range(BATCH + 1, 251))


def test_the_position_in_another_stream_is_ignored(tmp_path: Path) -> None:
    Positions(tmp_path / "places.json", "one")[SHARD] = sequence(5)

    assert Positions(tmp_path / "places.json", "one")[SHARD] == sequence(5)
    assert Positions(tmp_path / "places.json", "another")[SHARD] is None


@given(
    count=st.integers(0, 40),
    never=st.sets(st.integers(1, 40), max_size=3),
    once=st.sets(st.integers(1, 40), max_size=5),
)
def test_every_record_is_handled_or_given_up(count: int, never: set[int], once: set[int]) -> None:
    left = set(once)
    handled: set[int] = set()

    def handle(batch: list[int]) -> int | None:
        for number in batch:
            if number in never or number in left:
                left.discard(number)
                return number
            handled.add(number)
        return None

    world = World(count, handle)
    world.consumer.poll()

    assert set(world.given_up) == {number for number in never if number <= count}
    assert handled == set(range(1, count + 1)) - never
