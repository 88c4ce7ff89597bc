"""When a request is sent again, and how long to wait before."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dynashard_client.errors import DynashardError, EngineUnavailableError, OutcomeUnknownError

T = TypeVar("T")


class LostError(Exception):
    """No answer came, or one without an outcome: the request may have been executed. `error` is for the caller."""

    def __init__(self, error: DynashardError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Retries:
    """How often requests are sent, and how long to wait in between.

    Attributes:
        attempts: how often a request is sent at most, the first time included.
        first_pause, longest_pause: bounds of the exponential backoff, in seconds; pauses are drawn evenly from zero to
            the bound (full jitter), after what the backend says to wait.
        sleep, random: injected in tests.
    """

    attempts: int = 5
    first_pause: float = 0.2
    longest_pause: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def run(self, send: Callable[[bool], T], *, repeatable: bool) -> T:
        """Send until there is an answer.

        Args:
            send: sends the request; its argument says whether an earlier attempt may have been applied.
            repeatable: whether what may have been done already can be asked for again. What was refused for now, as by
                a throttle, is asked for again in any case.

        Raises:
            OutcomeUnknownError: what may have been done already, and cannot be asked for again.
            DynashardError: what is refused for good, or still after the last attempt.
        """
        lost = False
        for attempt in range(1, self.attempts + 1):
            try:
                return send(lost)
            except LostError as error:
                if not repeatable:
                    raise _unknown(error) from error
                if attempt == self.attempts:
                    raise error.error from error
                lost, least = True, 0.0
            except DynashardError as error:
                if not error.retryable or attempt == self.attempts:
                    raise
                least = float(error.retry_after or 0)
            self.pause(attempt, least)
        raise AssertionError("unreachable: the last attempt answers or raises")

    def pause(self, attempt: int, least: float = 0.0) -> None:
        """Wait after an attempt, counted from 1: at least so many seconds, and a random time more."""
        self.sleep(least + self.random() * min(self.first_pause * 2 ** (attempt - 1), self.longest_pause))


def _unknown(lost: LostError) -> DynashardError:
    """Return the error for the caller of a write whose answer was lost."""
    if not isinstance(lost.error, EngineUnavailableError):
        return lost.error
    return OutcomeUnknownError(f"{lost.error} It is not sent again: read the item before you decide.")
