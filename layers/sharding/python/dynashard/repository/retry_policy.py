"""How long work is retried, and rounds of requests that repeat what is left unprocessed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import Any, Generic, NamedTuple, Self, TypeVar

from msgspec import Struct

from dynashard import waiting
from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import (
    DynashardError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionConflictError,
    UnprocessedError,
)
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
    """The members of a batch that are not known to be done; all others are.

    Attributes:
        members: were not done, and may be sent again.
        cause: the error that prevented it, if there was one.
        unknown: may have been done, or may still be: they must not be sent again.
        failed: were not done and never will be, each with the error that says why.
    """

    members: Sequence[T] = ()
    cause: DynashardError | None = None
    unknown: Sequence[T] = ()
    failed: Sequence[tuple[T, DynashardError]] = ()

    @classmethod
    def unsent(cls, members: Sequence[T], error: DynashardError) -> Self:
        """Return members of which nothing was sent because of an error."""
        if isinstance(error, ThrottledError | TransactionConflictError | UnprocessedError):
            return cls(members, error)
        return cls(failed=[(member, error) for member in members])

    @classmethod
    def by_error(cls, members: Iterable[tuple[T, DynashardError]]) -> Self:
        """Return members that were sent, each with its error."""
        left: list[tuple[T, DynashardError]] = []
        unknown: list[T] = []
        failed: list[tuple[T, DynashardError]] = []
        for member, error in members:
            if isinstance(error, OutcomeUnknownError):
                unknown.append(member)
            else:
                again = isinstance(error, ThrottledError | TransactionConflictError)
                (left if again else failed).append((member, error))
        return cls([member for member, _ in left], left[0][1] if left else None, unknown, failed)


class BatchOperation(Struct, frozen=True):
    """DynamoDB's name of an operation on many items, and how many of them are sent at the same time."""

    name: str
    wave: int


def run_rounds(
    operation: BatchOperation,
    members: Iterable[T],
    once: Callable[[Sequence[T]], Unfinished[T]],
    pauses: Iterator[float],
) -> Unfinished[T]:
    """Do all of the work, a wave at a time by `once`, and repeat what is left after each pause.

    Returns what is not done when nothing is left to be repeated, or there are no more pauses.
    """
    left, cause = list(members), None
    unknown: list[T] = []
    failed: list[tuple[T, DynashardError]] = []
    while left:
        rounds = [once(left[at : at + operation.wave]) for at in range(0, len(left), operation.wave)]
        unknown += [member for each in rounds for member in each.unknown]
        failed += [member for each in rounds for member in each.failed]
        left = [member for each in rounds for member in each.members]
        cause = next((each.cause for each in rounds if each.cause is not None), None)
        if left and next(pauses, None) is None:
            break
    return Unfinished(left, cause, unknown, failed)


def read_rounds(
    operation: BatchOperation,
    members: Iterable[T],
    once: Callable[[Sequence[T]], Unfinished[T]],
    pauses: Iterator[float],
    key_of: Callable[[T], ItemKey],
) -> None:
    """Read all of the members; see `run_rounds`.

    Raises `UnprocessedError` with the logical partitions and sort keys of those that were not read in time.
    """
    rest = run_rounds(operation, members, once, pauses)
    if not rest.members:
        return
    keys = dict.fromkeys(map(key_of, rest.members))
    raise UnprocessedError(
        f"DynamoDB left {len(keys)} keys of a batch unprocessed; send these again later",
        operation=operation.name,
        keys=[{PK: key.partition, SK: key.sort} for key in keys],
    ) from rest.cause


def map_concurrently(work: Callable[[T], R], members: Sequence[T], concurrency: int) -> list[R]:
    """Return the result of the work for each member, several at a time; raise the first error in their order."""
    concurrency = min(concurrency, len(members))
    if concurrency <= 1:
        return [work(member) for member in members]
    if (waiter := waiting.current()) is not None:
        return waiting.map_tasks(waiter, work, members, concurrency)
    # Few processes need threads here.
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415

    with ThreadPoolExecutor(concurrency, thread_name_prefix="dynashard-batch") as pool:
        try:
            futures = [pool.submit(copy_context().run, work, member) for member in members]
            wait(futures)
        except BaseException:
            # The caller was interrupted, so nobody waits for what has not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]
