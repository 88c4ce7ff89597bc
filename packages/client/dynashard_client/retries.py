"""When a request is sent again, and how long to wait before."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard_client.errors import DynashardError, EngineUnavailableError, OutcomeUnknownError
from dynashard_client.steps import Ask, Call, Pause, Step, Steps

READS: Final = frozenset({"get", "list", "count", "batch_get"})
"""Operations that change nothing."""


async def _sleep(seconds: float) -> None:
    """Wait on the event loop."""
    import asyncio  # noqa: PLC0415 - programs without an event loop need not load it

    await asyncio.sleep(seconds)


class LostError(Exception):
    """No answer came, or one without an outcome: the request may have been executed. `error` is for the caller."""

    def __init__(self, error: DynashardError) -> None:
        super().__init__(str(error))
        self.error = error


def unsent(reason: object) -> EngineUnavailableError:
    """Return the error of a request for which there was no connection: nothing was done, so it can be sent again."""
    return EngineUnavailableError(f"The backend cannot be reached ({reason}): nothing was done.", retry_after=0)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often requests are sent, and how long to wait in between.

    Attributes:
        attempts: how often a request is sent at most, the first time included.
        first_pause, longest_pause: bounds of the exponential backoff, in seconds; pauses are drawn evenly from zero to
            the bound (full jitter), after what the backend says to wait.
        sleep, random: injected in tests; `sleep_async` is what an `AsyncClient` waits by.
    """

    attempts: int = 5
    first_pause: float = 0.2
    longest_pause: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    sleep_async: Callable[[float], Awaitable[None]] = _sleep

    def sent(self, step: Ask | Call, *, repeatable: bool) -> Steps[Step, Any]:
        """Send a request until there is an answer, and return it.

        Args:
            step: the request.
            repeatable: whether what may have been done already can be asked for again. What was refused for now, as by
                a throttle, is asked for again in any case.

        Raises:
            OutcomeUnknownError: what may have been done already, and cannot be asked for again.
            DynashardError: what is refused for good, or still after the last attempt.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return (yield step)
            except LostError as error:
                if not repeatable:
                    raise _unknown(error) from error
                if attempt == self.attempts:
                    raise error.error from error
                least = 0.0
            except DynashardError as error:
                if not error.retryable or attempt == self.attempts:
                    raise
                least = float(error.retry_after or 0)
            yield self.pause(attempt, least)
        raise AssertionError("unreachable: the last attempt answers or raises")

    def pause(self, attempt: int, least: float = 0.0) -> Pause:
        """Return the pause after an attempt, counted from 1: at least so many seconds, and a random time more."""
        return Pause(least + self.random() * min(self.first_pause * 2 ** (attempt - 1), self.longest_pause))


def call_steps(operation: str, name: str, members: Mapping[str, Any], retries: Retries) -> Steps[Step, Any]:
    """Return the steps of an operation on a system that is not an entity; a read may be repeated."""
    return retries.sent(Call(name, {"operation": operation, **members}), repeatable=operation in READS)


def _unknown(lost: LostError) -> DynashardError:
    """Return the error for the caller of a write whose answer was lost."""
    if not isinstance(lost.error, EngineUnavailableError):
        return lost.error
    return OutcomeUnknownError(f"{lost.error} It is not sent again: read the item before you decide.")
