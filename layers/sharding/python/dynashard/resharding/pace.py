"""How fast a task may write: its part of a budget, and less where DynamoDB throttles."""

from dataclasses import dataclass
from typing import Final

from dynashard.errors import KeyRangeThrottledError, ThrottledError
from dynashard.runtime import Runtime

_MOVE_UNITS: Final = 4
"""What the smallest move takes."""
_BURST: Final = 0.03
"""Seconds of its budget that a task sends at a time: a larger burst would only make others wait behind it."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 20.0
_FIRST_CONFLICT: Final = 0.02
_LONGEST_CONFLICT: Final = 1.0
_LEAST: Final = 1 / 32
_SLOWER: Final = 0.5
_FASTER: Final = 1.1


@dataclass
class Speed:
    """How much of the full speed is driven, and from when on.

    Threads that share one may now and then lose a change of it to another: it is a measure, not a count.
    """

    share: float = 1.0
    after: float = 0.0
    streak: int = 0

    def brake(self, now: float, pause: float) -> None:
        """Stop for a while and go on at half the speed."""
        self.share = max(_LEAST, self.share * _SLOWER)
        self.after = max(self.after, now + pause)
        self.streak += 1

    def ease(self) -> None:
        """All went well: a little faster."""
        self.share = min(1.0, self.share * _FASTER)
        self.streak = 0


class Pace:
    """The pace of one task.

    A throttled key range slows this task alone; a limit of the table or the account slows all that share `table`.

    Args:
        rate: write units a second; None for no bound.
        width: writes at a time.
        table: the speed that all tasks of this process share.
        runtime: time and randomness.
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
        """How many writes to send at a time now."""
        width = self._width * self._own.share * self._table.share
        if self._rate is not None:
            width = min(width, self._rate * _BURST / _MOVE_UNITS)
        return max(1, int(width))

    @property
    def after(self) -> float:
        """When the next write may be sent, in epoch seconds."""
        return max(self._own.after, self._table.after)

    def not_before(self, at: float) -> None:
        """Send nothing before a time."""
        self._own.after = max(self._own.after, at)

    def ready(self, deadline: float) -> bool:
        """Wait until the next write may be sent; False if that is after the deadline, having waited for that."""
        now = self._runtime.clock()
        after = self.after
        if after > deadline:
            self._runtime.sleep(max(0.0, deadline - now))
            return False
        if after > now:
            self._runtime.sleep(after - now)
        return True

    def spent(self, units: float) -> None:
        """Count write units against the budget."""
        if self._rate is not None and units:
            share = self._own.share * self._table.share
            self._own.after = max(self._own.after, self._runtime.clock()) + units / (self._rate * share)

    def went_well(self) -> None:
        """What was sent met no resistance."""
        self._conflicts = 0
        self._own.ease()
        self._table.ease()

    def throttled(self, error: ThrottledError) -> None:
        """What was sent was throttled."""
        speed = self._own if isinstance(error, KeyRangeThrottledError) else self._table
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**speed.streak) * (0.5 + self._runtime.random())
        speed.brake(self._runtime.clock(), pause)

    def conflicted(self) -> None:
        """What was sent met others' writes, or its answer was lost."""
        pause = min(_LONGEST_CONFLICT, _FIRST_CONFLICT * 2**self._conflicts)
        self._conflicts = min(self._conflicts + 1, 10)
        self.not_before(self._runtime.clock() + pause * (0.5 + self._runtime.random()))
