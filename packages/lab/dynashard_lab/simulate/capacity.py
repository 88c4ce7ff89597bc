"""How many units a table or index has in one direction, reading or writing, and how that number changes by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final, Protocol

from dynashard_lab.simulate.settings import Limit, Settings

DAY: Final = 86_400.0


class Capacity(Protocol):
    """The units of one direction.

    Attributes:
        units: the units a second that are allowed now.
        burst_seconds: for how long unused units are saved.
        saved: the seconds of units that are saved at the start.
        billed: whether `units` are paid for, whether used or not.
    """

    units: float
    burst_seconds: float
    saved: float
    billed: bool

    @property
    def limit(self) -> Limit:
        """What a throttle at this number limits."""
        ...

    def review(self, now: float, rate: float) -> None:
        """Take the units a second that were consumed on average since the last review into account."""
        ...


class OnDemand:
    """On-demand capacity: a multiple of the previous peak, at least what the table started with or was warmed to."""

    billed = False

    def __init__(self, start: float, quota: float, settings: Settings, *, maximum: float = inf) -> None:
        self._settings = settings
        self._quota = quota
        self._maximum = maximum
        self._ceiling = start
        self._recent: list[tuple[float, float]] = []
        """The times and rates of new peaks that do not count as previous yet, each higher than the one before."""
        self.burst_seconds = self.saved = settings.limit_burst_seconds
        self.units = min(start, quota, maximum)

    @property
    def ceiling(self) -> float:
        """The units a second that the partitions of the table are made for."""
        return self._ceiling

    @property
    def limit(self) -> Limit:
        """The lowest of the table's own maximum, the account's quota and the ceiling."""
        if self._maximum <= min(self._quota, self._ceiling):
            return "MaxOnDemandThroughput"
        return "AccountLimit" if self._quota <= self._ceiling else self._settings.ceiling_limit

    def review(self, now: float, rate: float) -> None:
        """Raise the ceiling if a peak has become old enough to count as previous."""
        growth = self._settings.on_demand_growth
        if rate * growth > self._ceiling and (not self._recent or rate > self._recent[-1][1]):
            self._recent.append((now, rate))
        while self._recent and now - self._recent[0][0] >= self._settings.on_demand_growth_seconds:
            self._ceiling = max(self._ceiling, growth * self._recent.pop(0)[1])
        self.units = min(self._ceiling, self._quota, self._maximum)


@dataclass(frozen=True, slots=True)
class Tracking:
    """Target tracking: the share of capacity that is to be used, and the bounds of capacity."""

    target: float
    lowest: float
    highest: float


class Provisioned:
    """Provisioned capacity: fixed, by a daily schedule, by target tracking, or by both.

    `schedule` has the second of the day and the units from then on. With target tracking these are the lowest units.
    """

    limit: Limit = "ProvisionedThroughput"
    billed = True

    def __init__(
        self,
        units: float,
        settings: Settings,
        *,
        tracking: Tracking | None = None,
        schedule: Sequence[tuple[float, float]] = (),
    ) -> None:
        self._settings = settings
        self._tracking = tracking
        self._schedule = sorted(schedule)
        self._above_since = self._below_since = inf
        self._due: tuple[float, float] | None = None
        """When a change that target tracking has begun takes effect, and its units."""
        self._decreases: list[float] = []
        self.burst_seconds = settings.burst_seconds
        self.saved = max(settings.limit_burst_seconds, settings.burst_seconds * settings.burst_at_start)
        self.units = self._scheduled(0.0) or units

    def _scheduled(self, now: float) -> float | None:
        """Return the units of the schedule; before its first time of the day, those of its last."""
        if not self._schedule:
            return None
        past = [units for second, units in self._schedule if second <= now % DAY]
        return past[-1] if past else self._schedule[-1][1]

    def review(self, now: float, rate: float) -> None:
        """Follow the schedule, then the target."""
        scheduled = self._scheduled(now)
        if self._tracking is None:
            self._change(now, scheduled or self.units)
            return
        lowest = self._tracking.lowest if scheduled is None else scheduled
        if self._due is not None:
            at, units = self._due
            if now < at:
                return
            self._due = None
            self._change(now, max(units, lowest))
        wanted = max(self._tracked(now, rate, self._tracking), lowest)
        if wanted != self.units:
            self._due = now + self._settings.update_seconds, wanted

    def _tracked(self, now: float, rate: float, tracking: Tracking) -> float:
        settings, begun = self._settings, now - self._settings.review_seconds
        used, margin = rate / self.units, 1 - settings.scale_in_margin
        self._above_since = min(self._above_since, begun) if used > tracking.target else inf
        self._below_since = min(self._below_since, begun) if used < tracking.target * margin else inf
        wanted = min(float(ceil(round(rate / tracking.target, 6))), tracking.highest)
        if now - self._above_since >= settings.scale_out_seconds:
            return max(wanted, self.units)
        if now - self._below_since >= settings.scale_in_seconds:
            return wanted
        return self.units

    def _change(self, now: float, units: float) -> None:
        if units < self.units:
            today = [at for at in self._decreases if at // DAY == now // DAY]
            pause = self._settings.decrease_pause_seconds
            if len(today) >= self._settings.free_decreases and now - today[-1] < pause:
                return
            self._decreases = [*today, now]
        self.units = units


def partitions_for(write_units: float, read_units: float, settings: Settings, *, provisioned: bool) -> int:
    """Return how many partitions units need.

    Provisioned tables add what reads and writes need. On demand, the start of 4,000 and 12,000 units is 4 partitions,
    so the larger of both counts.
    """
    writes, reads = write_units / settings.partition_write_units, read_units / settings.partition_read_units
    return max(1, ceil(writes + reads if provisioned else max(writes, reads)))
