"""Backpressure: a task writes within its part of a budget, and backs off exponentially when DynamoDB throttles."""

from dataclasses import dataclass
from typing import Final

from dynashard.errors import TableThrottledError, ThrottledError
from dynashard.runtime import Runtime

_MOVE_UNITS: Final = 4  # write units of the smallest move
_BURST: Final = 0.03
"""Seconds of its budget that a task sends at a time: a larger burst would delay other writers."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 20.0
_LONGEST_HOT_PAUSE: Final = 2.0
_FIRST_CONFLICT: Final = 0.02
_LONGEST_CONFLICT: Final = 1.0
_LEAST: Final = 1 / 32
_SLOWER: Final = 0.5
_FASTER: Final = 1.1


@dataclass
class Speed:
    """The share of the full speed, and when to write next. Threads that share one may lose an update without harm."""

    share: float = 1.0
    after: float = 0.0
    streak: int = 0

    def brake(self, now: float, pause: float) -> None:
        """Pause for so many seconds and continue at half the speed."""
        self.share = max(_LEAST, self.share * _SLOWER)
        self.after = max(self.after, now + pause)
        self.streak += 1

    def ease(self) -> None:
        """Speed up a little."""
        self.share = min(1.0, self.share * _FASTER)
        self.streak = 0


class Pace:
    """The pace of one task: `rate` write units a second, if any, and at most `width` writes at a time.

    A throttled key range slows this task alone; a limit of the table or the account slows all that share `table`.
    """

    def __init__(self, rate: float | None, *, width: int, table: Speed, runtime: Runtime) -> None:
        self._rate = rate
        self._width = width
        self._own = Speed()
        self._table = table
        self._runtime = runtime
        self._conflicts = 0

    @property
    def width(self) -> int:
        """How many writes to send at a time."""
        width = self._width * self._own.share * self._table.share
        if self._rate is not None:
            width = min(width, self._rate * _BURST / _MOVE_UNITS)
        return max(1, int(width))

    @property
    def after(self) -> float:
        """When the next write may be sent, in epoch seconds."""
        return max(self._own.after, self._table.after)

    def not_before(self, at: float) -> None:
        """Send nothing before a time, in epoch seconds."""
        self._own.after = max(self._own.after, at)

    def ready(self, deadline: float) -> bool:
        """Wait until the next write may be sent, at most until the deadline; whether it may be sent."""
        after = self.after
        wait = min(after, deadline) - self._runtime.clock()
        if wait > 0:
            self._runtime.sleep(wait)
        return after <= deadline

    def spent(self, units: float) -> None:
        """Count write units against the budget."""
        if self._rate is not None and units:
            share = self._own.share * self._table.share
            self._own.after = max(self._own.after, self._runtime.clock()) + units / (self._rate * share)

    def succeeded(self) -> None:
        """Speed up, and pause shorter next time, after writes of which some succeeded."""
        self._conflicts = 0
        self._own.ease()
        self._table.ease()

    def throttled(self, error: ThrottledError) -> None:
        """Back off after a throttle."""
        # A throttled transaction has no reason: every task that meets it slows down by itself. A hot partition saves
        # few units, so long pauses would waste what callers leave.
        full = isinstance(error, TableThrottledError)
        speed, longest = (self._table, _LONGEST_PAUSE) if full else (self._own, _LONGEST_HOT_PAUSE)
        pause = min(longest, _FIRST_PAUSE * 2**speed.streak) * (0.5 + self._runtime.random())
        speed.brake(self._runtime.clock(), pause)

    def conflicted(self) -> None:
        """Pause after a conflict with other writes, or a lost answer."""
        pause = min(_LONGEST_CONFLICT, _FIRST_CONFLICT * 2**self._conflicts)
        self._conflicts = min(self._conflicts + 1, 10)
        self.not_before(self._runtime.clock() + pause * (0.5 + self._runtime.random()))
