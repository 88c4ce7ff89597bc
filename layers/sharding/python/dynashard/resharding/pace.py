"""Backpressure: a task consumes no more than its rate, and backs off exponentially when the table is throttled.

A hot shard throttles callers and the mover alike. The mover then sends again after a short pause, because it has a
share of that shard: backing off would leave all of it to callers who ask for more than there is, and the resize would
never end. What is throttled consumes nothing, so the rate bounds what the mover gets, and callers get the rest.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from dynashard.errors import TableThrottledError, ThrottledError
from dynashard.resharding.rates import Rate
from dynashard.runtime import Runtime

_ROUND_TRIP: Final = 0.005
"""Seconds that a write takes near the table. No more writes are under way than a task's rate has begin in this time.
Further ones would wait for each other in the table, and other writers for all of them."""
_AHEAD: Final = 0.1
"""For how many seconds of writes a task reads ahead."""
_READ_BURST: Final = 0.03
"""Seconds of its rate of reads that a page may consume."""
_LEAST_READ: Final = 4.0
"""Read units that a page may consume at any rate. A part of 4 KB is billed as a whole one, so tiny pages cost more."""
_LEAST_PAGE: Final = 10
_LARGEST_PAGE: Final = 200
"""Items that are read at a time if they need hardly any writes."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 20.0
_FIRST_HOT_PAUSE: Final = 0.05
_LONGEST_HOT_PAUSE: Final = 0.4
_FIRST_CONFLICT: Final = 0.02
_LONGEST_CONFLICT: Final = 1.0
_LARGEST: Final = 400.0
"""KB of the largest item: no write costs more than so many smallest ones, and no page as many read units."""
_LEAST: Final = 1 / 32
_SLOWER: Final = 0.5
_FASTER: Final = 1.1


def largest_page(rate: float, units: float, items: int) -> float:
    """Return how many items a page may have to take little of a table that gives so many read units a second.

    A page of so many `items` has consumed `units`.
    """
    return max(_LEAST_READ, rate * _READ_BURST) * items / units if units else float("inf")


@dataclass
class Speed:
    """The share of the full speed, and when to write next. Threads that share one may lose an update without harm."""

    share: float = 1.0
    after: float = 0.0
    streak: int = 0
    round_trip: float = float("inf")
    """Seconds of the fastest writes: what a write takes that waits for no other."""

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
    """The pace of one task: its rate, and at most `width` writes and `page` items at a time.

    Many small requests delay others less than a few large ones. So a page has what is written in a tenth of a second,
    and no more writes are under way than the rate needs: mostly one, and more if the table is far away.

    A throttled key range delays this task alone; a limit of the table or the account slows all that share `table`.
    """

    def __init__(self, rate: Rate, *, width: int, table: Speed, runtime: Runtime, most: int = _LARGEST_PAGE) -> None:
        self.rate = rate
        self._width = width
        self._most = most
        self._page = self._written_ahead(1.0)
        self._own = Speed()
        self._table = table
        self._runtime = runtime
        self._conflicts = 0
        self._reads_after = 0.0

    @property
    def width(self) -> int:
        """How many writes to send at a time."""
        known = self._table.round_trip if self._table.round_trip < float("inf") else 0.0
        under_way = self.rate.writes / self.rate.write * max(_ROUND_TRIP, known)
        return max(1, ceil(min(self._width, under_way) * self._table.share))

    @property
    def page(self) -> int:
        """How many items to read at a time."""
        return max(1, int(min(self._page, self._most)))

    @property
    def after(self) -> float:
        """When the next request may be sent, in epoch seconds.

        No wait is longer than one for the largest item: a later time was stored by a clock that was ahead.
        """
        longest = _LONGEST_PAUSE * 1.5 + _LARGEST * self.rate.write / (self.rate.writes * _LEAST)
        after = max(self._own.after, self._table.after)
        now = self._runtime.clock()
        if after > now + longest:
            self._own.after = min(self._own.after, now)
            self._table.after = min(self._table.after, now)
            return now
        return after

    def not_before(self, at: float) -> None:
        """Send nothing before a time, in epoch seconds."""
        self._own.after = max(self._own.after, at)

    def ready(self, deadline: float) -> bool:
        """Wait until the next request may be sent, at most until the deadline; whether it may be sent."""
        after = self.after
        wait = min(after, deadline) - self._runtime.clock()
        if wait > 0:
            self._runtime.sleep(wait)
        return after <= deadline

    def ready_to_read(self, deadline: float) -> bool:
        """Wait until the next items may be read, and then as `ready`; what was read may be written for at once.

        A page of reads is waited for beyond the deadline, because a shorter slice would never read another one.
        """
        now = self._runtime.clock()
        # A page has at most 1 MB; a longer wait was counted by a clock that was ahead.
        after = self._reads_after if self._reads_after <= now + _LARGEST / self.rate.reads else now
        if after > now:
            self._runtime.sleep(after - now)
        return self.ready(max(deadline, self._runtime.clock()))

    def spent(self, units: float, began: float) -> None:
        """Count the units of writes that were sent at this time, in epoch seconds, against the rate."""
        if units:
            took = self._runtime.clock() - began
            # A clock that was set back in between measures nothing.
            if took >= 0:
                self._table.round_trip = min(self._table.round_trip, took)
            self._own.after = max(self._own.after, began) + units / (self.rate.writes * self._table.share)

    def read(self, units: float, items: int, writes: int) -> None:
        """Count a page against the rate of reads, and let its items, and the writes that they need, decide the next."""
        self._reads_after = max(self._reads_after, self._runtime.clock()) + units / self.rate.reads
        if items:
            ahead = self._written_ahead(writes / items)
            # One page shows little about the next, so a page is at most twice as large as the one before.
            self._page = min(ahead, largest_page(self.rate.reads, units, items), 2.0 * self.page)

    def _written_ahead(self, writes: float) -> float:
        """How many items are read ahead if an item needs so many writes."""
        if not writes:
            return self._most
        return max(_LEAST_PAGE, _AHEAD * self.rate.writes / (self.rate.write * writes))

    def succeeded(self) -> None:
        """Speed up, and pause shorter next time, after writes of which some succeeded."""
        self._conflicts = 0
        self._own.streak = 0
        self._table.ease()

    def throttled(self, error: ThrottledError) -> None:
        """Pause after a throttle; back off if it is the table's or the account's."""
        now, random = self._runtime.clock(), 0.5 + self._runtime.random()
        if isinstance(error, TableThrottledError):
            self._table.brake(now, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._table.streak) * random)
            return
        # A throttled transaction has no reason. Each task that meets one pauses by itself.
        self.not_before(now + min(_LONGEST_HOT_PAUSE, _FIRST_HOT_PAUSE * 2**self._own.streak) * random)
        self._own.streak = min(self._own.streak + 1, 10)

    def conflicted(self) -> None:
        """Pause after a conflict with other writes, or a lost answer."""
        pause = min(_LONGEST_CONFLICT, _FIRST_CONFLICT * 2**self._conflicts)
        self._conflicts = min(self._conflicts + 1, 10)
        self.not_before(self._runtime.clock() + pause * (0.5 + self._runtime.random()))
