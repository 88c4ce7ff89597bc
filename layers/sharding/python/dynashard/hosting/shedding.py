"""Load shedding: refuse what costs much while DynamoDB does not keep up, so that single items are still served.

A function's environment takes one request at a time, so there is no queue in it to look at. What it can see is how
DynamoDB has answered it lately. This is the adaptive throttling of Google's SRE book ("Handling Overload") with two
criticalities: expensive requests are refused in proportion to the share of attempts that DynamoDB refused, and cheap
requests never are. The cheap ones go on measuring, so the refusals end by themselves.
"""

import random as random_numbers
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from dynashard.errors import OverloadedError
from dynashard.transport.interface import Meter

EXPENSIVE_OPERATIONS: Final = frozenset({"list", "count", "batch_get", "batch_write"})
"""Operations of direct invocation that concern many items."""
HALF_LIFE_SECONDS: Final = 20.0
"""After so long, what was seen counts half."""
TOLERANCE: Final = 1.5
"""Attempts for each accepted one that are no overload: shedding begins when more than a third is refused."""
PRIOR: Final = 8.0
"""Attempts that are taken to have been accepted before anything was seen: one unlucky request proves little."""
SLOW_SECONDS: Final = 1.0
"""A round trip of a cheap request that takes longer counts as refused. It takes 5 ms as a rule."""
LONGEST_RETRY_SECONDS: Final = 5
"""Callers that are refused are told to come back after 1 to so many seconds, at random: not all at once."""
_KEY_RANGE: Final = "KeyRange"
"""In the reasons of throttles that concern one hot key range: the table itself keeps up."""
_UNAVAILABLE: Final = "engine_unavailable"


def is_expensive(event: object) -> bool:
    """Return whether an event of direct invocation asks for an operation on many items."""
    operation = event.get("operation") if isinstance(event, Mapping) else None
    return isinstance(operation, str) and operation in EXPENSIVE_OPERATIONS


class LoadSignal:
    """How DynamoDB has kept up lately, as this process has seen it. Safe to share between threads.

    Args:
        clock: in seconds.
        random: evenly from 0 to below 1.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, random: Callable[[], float] = random_numbers.random
    ) -> None:
        self._clock = clock
        self._random = random
        self._lock = Lock()
        self._at = clock()
        self._attempts = 0.0
        self._accepted = 0.0

    def observe(self, meter: Meter, seconds: float, *, expensive: bool, code: str | None = None) -> None:
        """Take note of a request that was answered.

        Args:
            meter: of what it sent to DynamoDB.
            seconds: how long it took.
            expensive: its time says nothing about DynamoDB, because it has work of its own.
            code: of the error that it was answered, if any.
        """
        accepted = float(meter.consumed.requests)
        refused = float(sum(count for name, count in meter.throttles.items() if _KEY_RANGE not in name))
        refused += code == _UNAVAILABLE
        if not expensive and accepted and seconds / accepted > SLOW_SECONDS:
            accepted, refused = 0.0, refused + accepted
        if not accepted and not refused:
            return
        with self._lock:
            self._decay()
            self._attempts += accepted + refused
            self._accepted += accepted

    def refuse_expensive(self) -> None:
        """Refuse an expensive request, or let it pass; to be asked before anything is done for it.

        Raises:
            OverloadedError: DynamoDB does not keep up; `retry_after` says when to come back.

        Cost: no request.
        """
        with self._lock:
            self._decay()
            excess = self._attempts - TOLERANCE * self._accepted
            share = excess / (self._attempts + PRIOR)
        if excess > 0 and self._random() < share:
            raise OverloadedError(
                "DynamoDB does not keep up: requests for many items are refused until it does. Try again later.",
                retry_after=1 + int(self._random() * LONGEST_RETRY_SECONDS),
            )

    def _decay(self) -> None:
        now = self._clock()
        # A wall clock may be set back.
        factor = 0.5 ** (max(0.0, now - self._at) / HALF_LIFE_SECONDS)
        self._at, self._attempts, self._accepted = now, self._attempts * factor, self._accepted * factor
