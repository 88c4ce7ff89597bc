"""A simulated process: its wall clock, and what it learns about that from the dates of answers."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

from dynashard.key_clock import DEFAULT_BOUNDS, KeyClock
from dynashard.runtime import Runtime
from dynashard.transport.clock_offset import ClockOffset
from dynashard_checks.schedules.scheduler import Scheduler


@dataclass
class Process:
    """A process of a client, a policy or a controller.

    Attributes:
        scheduler: has the true time.
        off: by how many seconds its wall clock is ahead; below 0 it is behind.
        dated: whether its answers have dates. Without them it does not learn that its clock is off.
        was_set: whether somebody has set its wall clock while it ran.
        offset: what it has learned.
    """

    scheduler: Scheduler
    off: float = 0.0
    dated: bool = False
    was_set: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.offset = ClockOffset(Runtime(self.clock, monotonic=self.scheduler.clock))
        self.key_clock = KeyClock(self.clock, self.offset)

    @property
    def beyond(self) -> bool:
        """Whether its clock is off by more than is assumed."""
        return abs(self.off) > DEFAULT_BOUNDS.off

    def set_clock(self, off: float) -> None:
        """Set its wall clock, which is ahead by so many seconds from now on."""
        self.off, self.was_set = off, True

    def clock(self) -> float:
        """Return the time of its wall clock, in epoch seconds."""
        return self.scheduler.now + self.off

    def observe(self, sent: float) -> None:
        """Take the date of an answer that comes now; it was requested when the wall clock was at `sent`."""
        if self.dated:
            date = format_datetime(datetime.fromtimestamp(self.scheduler.now, UTC), usegmt=True)
            self.offset.observe(date, sent, self.clock())
