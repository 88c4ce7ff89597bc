"""The bounds of a request, the same over REST and direct invocation: its time, its Queries, its turn under overload."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from dynashard.errors import DynashardError
from dynashard.reads import allowing
from dynashard.transport.deadline import within
from dynashard.transport.interface import Meter, metered
from dynashard_serving.limits import MAX_QUERIES, READING_SHARE, time_to_answer
from dynashard_serving.shedding import LoadSignal

T = TypeVar("T")


class Used(Struct, frozen=True):
    """What a request took: its units and attempts, and its time in seconds."""

    meter: Meter
    seconds: float


class RequestBounds:
    """Runs requests within their bounds. Threads may share it.

    Args:
        clock: wall clock, in epoch seconds.
        load: how DynamoDB has answered this process lately.
        max_queries: how many Queries one request may send.
    """

    def __init__(self, clock: Callable[[], float], load: LoadSignal, *, max_queries: int = MAX_QUERIES) -> None:
        self._clock = clock
        self._load = load
        self._max_queries = max_queries

    def run(
        self, work: Callable[[], T], refused: Callable[[Exception], T], *, left: float, expensive: bool
    ) -> tuple[T, Used]:
        """Return the answer of `work`, or that of `refused` to any error, and what the request took.

        Args:
            work: performs the request. It is not called if the request is expensive and DynamoDB is overloaded.
            refused: makes an answer of an error.
            left: how long the invocation can still take, in seconds.
            expensive: whether the request concerns many items.

        Cost: none of its own.
        """
        started, code = self._clock(), None
        with within(time_to_answer(left)), metered() as meter, allowing(self._max_queries, left * READING_SHARE):
            try:
                if expensive:
                    self._load.refuse_expensive()
                answer = work()
            except Exception as error:  # noqa: BLE001 - the one place where every error becomes an answer
                code = error.code if isinstance(error, DynashardError) else None
                answer = refused(error)
        seconds = self._clock() - started
        self._load.observe(meter, seconds, expensive=expensive, code=code)
        return answer, Used(meter, seconds)
