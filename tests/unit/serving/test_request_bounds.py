"""The bounds of a request: its time, how it is counted, and its turn while DynamoDB is overloaded."""

from collections.abc import Callable

import pytest

from dynashard.errors import EngineUnavailableError, OverloadedError
from dynashard.transport.deadline import remaining
from dynashard.transport.interface import Consumed, record
from dynashard_serving.request_bounds import RequestBounds, Used
from dynashard_serving.shedding import LoadSignal

pytestmark = pytest.mark.unit


class World:
    """Bounds with a clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.bounds = RequestBounds(lambda: self.now, LoadSignal(lambda: self.now, lambda: 0.0))

    def run(self, work: Callable[[], object], *, left: float = 30.0, expensive: bool = False) -> tuple[object, Used]:
        return self.bounds.run(work, lambda error: error, left=left, expensive=expensive)


def unavailable() -> object:
    raise EngineUnavailableError("DynamoDB does not answer", operation="GetItem")


def test_an_error_becomes_an_answer() -> None:
    answer, _ = World().run(unavailable)

    assert isinstance(answer, EngineUnavailableError)


def test_work_has_the_time_that_is_left_less_that_of_an_answer() -> None:
    left, _ = World().run(remaining, left=10.0)

    assert isinstance(left, float)
    assert 8.0 < left <= 9.0


def test_units_and_time_are_those_of_the_request() -> None:
    world = World()

    def work() -> str:
        record("GetItem", {"ConsumedCapacity": {"CapacityUnits": 0.5}})
        world.now += 2.0
        return "done"

    answer, used = world.run(work)

    assert (answer, used.seconds) == ("done", 2.0)
    assert used.meter.consumed == Consumed(read_units=0.5, requests=1)


def test_expensive_requests_are_refused_without_work_while_the_engine_is_unavailable() -> None:
    world, done = World(), list[str]()
    for _ in range(20):
        world.run(unavailable)

    refused, _ = world.run(lambda: done.append("listing"), expensive=True)
    world.run(lambda: done.append("item"))

    assert isinstance(refused, OverloadedError)
    assert done == ["item"]
