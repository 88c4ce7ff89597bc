"""How long work is retried, and rounds of requests that repeat what is left unprocessed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import Any, Generic, NamedTuple, TypeVar

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import EngineError, TransactionConflictError, UnprocessedError
from dynashard.runtime import SYSTEM, Runtime
from dynashard.schema import PK, SK
from dynashard.transport.deadline import remaining

T = TypeVar("T")
R = TypeVar("R")


class RetryPolicy(NamedTuple):
    """How long to retry what DynamoDB leaves unprocessed, or an item that is being moved.

    Attributes:
        seconds: when to give up, counted from the first request; at the deadline of the operation at the latest.
        first_pause, longest_pause: bounds of the exponential backoff, in seconds; pauses are drawn evenly from
            zero to the bound (full jitter).
    """

    seconds: float = 20.0
    first_pause: float = 0.05
    longest_pause: float = 5.0
    runtime: Runtime = SYSTEM

    def pauses(self) -> Iterator[float]:
        """Pause before each next attempt, in seconds; ends when the policy's or the operation's time is up."""
        deadline = self.runtime.monotonic() + self.seconds
        bound = self.first_pause
        while True:
            pause = self.runtime.random() * bound
            if self.runtime.monotonic() + pause > deadline or pause >= remaining():
                return
            self.runtime.sleep(pause)
            yield pause
            bound = min(bound * 2, self.longest_pause)


def unsettled(entity: EntityDefinition[Any], operation: str) -> TransactionConflictError:
    """Return the error for an item that is still being moved or written after the last retry."""
    return TransactionConflictError(
        f"{operation}: an item of {entity.name} was being moved or written by others all the time. Try again.",
        operation=operation,
    )


class Unfinished(NamedTuple, Generic[T]):
    """What a round of requests left undone: to be sent again, with the error that prevented it, if there was one.

    The outcome of `unknown` members is unknown: they must not be sent again.
    """

    members: Sequence[T]
    cause: EngineError | None = None
    unknown: Sequence[T] = ()


class BatchOperation(NamedTuple):
    """DynamoDB's name of an operation on many items, and how many of them are sent at the same time."""

    name: str
    wave: int


def run_rounds(
    operation: BatchOperation,
    members: Iterable[T],
    once: Callable[[Sequence[T]], Unfinished[T]],
    pauses: Iterator[float],
    key_of: Callable[[T], ItemKey],
) -> list[T]:
    """Do all of the work, a wave at a time by `once`, and repeat what is left after each pause.

    Returns the members with an unknown outcome.

    Raises:
        UnprocessedError: there are no more pauses. It has the logical partitions and sort keys that are left, and those
            with an unknown outcome.
    """
    left, unknown = list(members), list[T]()
    while left:
        rounds = [once(left[at : at + operation.wave]) for at in range(0, len(left), operation.wave)]
        unknown += [member for each in rounds for member in each.unknown]
        left = [member for each in rounds for member in each.members]
        if left and next(pauses, None) is None:
            keys = dict.fromkeys(key_of(member) for member in left)
            raise UnprocessedError(
                f"DynamoDB left {len(keys)} keys of a batch unprocessed; send these again later",
                operation=operation.name,
                keys=[{PK: key.partition, SK: key.sort} for key in keys],
                unknown=[{PK: key.partition, SK: key.sort} for key in dict.fromkeys(map(key_of, unknown))],
            ) from next((each.cause for each in rounds if each.cause is not None), None)
    return unknown


def map_concurrently(work: Callable[[T], R], members: Sequence[T], concurrency: int) -> list[R]:
    """Return the result of the work for each member, several at a time; raise the first error in their order."""
    concurrency = min(concurrency, len(members))
    if concurrency <= 1:
        return [work(member) for member in members]
    # Few processes need threads here.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(concurrency, thread_name_prefix="dynashard-batch") as pool:
        futures = [pool.submit(copy_context().run, work, member) for member in members]
    return [future.result() for future in futures]
