"""How long to go on, and how to send what is left again and again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Generic, TypeVar

from dynashard.entity import ItemKey
from dynashard.errors import EngineError, UnprocessedError
from dynashard.runtime import SYSTEM, Runtime
from dynashard.schema import PK, SK
from dynashard.transport.deadline import remaining

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to go on with what DynamoDB leaves unprocessed, or with what meets a move.

    Whatever it says, pauses end before the deadline of the operation, see `transport.deadline`.

    Attributes:
        seconds: how long after the first request to give up.
        first_pause, longest_pause: bounds of the exponential backoff, in seconds; pauses are drawn evenly from
            zero to the bound (full jitter).
        runtime: time and randomness.
    """

    seconds: float = 20.0
    first_pause: float = 0.05
    longest_pause: float = 5.0
    runtime: Runtime = SYSTEM

    def pauses(self) -> Iterator[float]:
        """Pause before each next attempt, in seconds, ending when the time is up, or the operation's."""
        deadline = self.runtime.monotonic() + self.seconds
        bound = self.first_pause
        while True:
            pause = self.runtime.random() * bound
            if self.runtime.monotonic() + pause > deadline or pause >= remaining():
                return
            self.runtime.sleep(pause)
            yield pause
            bound = min(bound * 2, self.longest_pause)


@dataclass(frozen=True, slots=True)
class Left(Generic[T]):
    """What one round of requests did not get done, and the error that kept it from that, if there was one.

    `unknown` are members that may have been done, or may still be: they must not be sent again.
    """

    members: Sequence[T]
    cause: EngineError | None = None
    unknown: Sequence[T] = ()


def run_rounds(
    members: Iterable[T],
    once: Callable[[Sequence[T]], Left[T]],
    pauses: Iterator[float],
    *,
    wave: int,
    operation: str,
    key_of: Callable[[T], ItemKey],
) -> list[T]:
    """Do all of the work, sending what is left of it again after a pause.

    Args:
        members: the work.
        once: does some of it, at most `wave` members, and tells what is left.
        pauses: pauses before each next round, ending when it is time to give up.
        wave: how many members one call of `once` takes: all of them are sent under one look at the topology.
        operation: DynamoDB's name of the operation, for the error.
        key_of: a member's key, for the error.

    Returns:
        Those of which nobody knows whether they were done, or still will be.

    Raises:
        UnprocessedError: the time is up; with the logical partitions and sort keys that are left, and those of which
            nobody knows.
    """
    left, unknown = list(members), list[T]()
    while left:
        rounds = [once(left[at : at + wave]) for at in range(0, len(left), wave)]
        unknown += [member for each in rounds for member in each.unknown]
        left = [member for each in rounds for member in each.members]
        if left and next(pauses, None) is None:
            keys = dict.fromkeys(key_of(member) for member in left)
            raise UnprocessedError(
                f"DynamoDB left {len(keys)} keys of a batch unprocessed; send these again later",
                operation=operation,
                keys=[{PK: key.partition, SK: key.sort} for key in keys],
                unknown=[{PK: key.partition, SK: key.sort} for key in dict.fromkeys(map(key_of, unknown))],
            ) from next((each.cause for each in rounds if each.cause is not None), None)
    return unknown


def map_concurrently(work: Callable[[T], R], members: Sequence[T], concurrency: int) -> list[R]:
    """What the work came to for each member, several at a time; raises the first error in their order."""
    concurrency = min(concurrency, len(members))
    if concurrency <= 1:
        return [work(member) for member in members]
    with ThreadPoolExecutor(concurrency, thread_name_prefix="dynashard-batch") as pool:
        under_way = [pool.submit(copy_context().run, work, member) for member in members]
    return [future.result() for future in under_way]
