"""Load shedding: refuse expensive requests while DynamoDB is overloaded, so that single items are still served.

An execution environment serves one request at a time, so it has no queue whose length could be measured. It measures
how DynamoDB has answered it lately. This is the adaptive throttling of Google's SRE book ("Handling Overload") with two
criticalities: expensive requests are refused in proportion to the share of attempts that DynamoDB refused, and cheap
requests are never refused. The cheap requests are measured meanwhile, so the refusals end by themselves.
"""

import random as random_numbers
import time
from collections.abc import Callable, Mapping
from typing import Final

from dynashard.errors import OverloadedError
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Meter

EXPENSIVE_OPERATIONS: Final = frozenset({"list", "count", "batch_get", "batch_write", "batch"})
"""Operations of direct invocation that concern many items."""
HALF_LIFE_SECONDS: Final = 20.0
"""An observation counts half after this time."""
TOLERANCE: Final = 1.5
"""Attempts per accepted attempt above which requests are shed: when DynamoDB refuses more than a third."""
PRIOR: Final = 8.0
"""Accepted attempts to begin with, so that one refused request alone does not cause shedding."""
SLOW_SECONDS: Final = 1.0
"""A round trip of a cheap request that takes longer counts as refused. A usual one takes 5 ms."""
LONGEST_RETRY_SECONDS: Final = 5
"""`Retry-After` is a random number of seconds from 1 to this one, so that callers do not all come back at once."""
_KEY_RANGE: Final = "KeyRange"
"""Part of the reasons of throttles that concern one hot key range, while the table itself is not overloaded."""
_UNAVAILABLE: Final = "engine_unavailable"


def is_expensive(event: object) -> bool:
    """Return whether an event of direct invocation asks for an operation on many items."""
    operation = event.get("operation") if isinstance(event, Mapping) else None
    return isinstance(operation, str) and operation in EXPENSIVE_OPERATIONS


class LoadSignal:
    """Estimates from the answers of DynamoDB to this process whether it is overloaded. Threads can share it."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, random: Callable[[], float] = random_numbers.random
    ) -> None:
        self._clock = clock
        self._random = random
        self._lock = own_lock(self)
        self._at = clock()
        self._attempts = 0.0
        self._accepted = 0.0

    def observe(self, meter: Meter, seconds: float, *, expensive: bool, code: str | None = None) -> None:
        """Record a request that was answered.

        Args:
            meter: the meter of the request.
            seconds: how long it took.
            expensive: whether it was expensive; its time is then not counted, because it also does work of its own.
            code: the code of the error that it was answered with, if any.
        """
        accepted = float(meter.consumed.requests)
        refused = float(code == _UNAVAILABLE)
        for name, count in meter.throttles.items():
            if _KEY_RANGE not in name:
                refused += count
        if not expensive and accepted and seconds / accepted > SLOW_SECONDS:
            accepted, refused = 0.0, refused + accepted
        if not accepted and not refused:
            return
        with self._lock:
            self._decay()
            self._attempts += accepted + refused
            self._accepted += accepted

    def refuse_expensive(self) -> None:
        """Refuse an expensive request if DynamoDB is overloaded. Call it before any work for the request.

        Raises:
            OverloadedError: DynamoDB is overloaded; `retry_after` says when to try again.

        Cost: no request.
        """
        with self._lock:
            self._decay()
            excess = self._attempts - TOLERANCE * self._accepted
            share = excess / (self._attempts + PRIOR)
        if excess > 0 and self._random() < share:
            raise OverloadedError(
                "DynamoDB is overloaded, so requests for many items are refused for now. Try again in a few seconds.",
                retry_after=1 + int(self._random() * LONGEST_RETRY_SECONDS),
            )

    def _decay(self) -> None:
        now = self._clock()
        # A wall clock may be set back.
        factor = 0.5 ** (max(0.0, now - self._at) / HALF_LIFE_SECONDS)
        self._at, self._attempts, self._accepted = now, self._attempts * factor, self._accepted * factor
