"""A token bucket in virtual time."""

from typing import Final

_SMALL: Final = 1e-9
"""Sums of fractions may be this much too small."""


class Bucket:
    """Units that accrue at a rate, and are kept for some seconds.

    A request that costs more than the bucket can hold is admitted when the bucket is full, and leaves it below zero.
    """

    __slots__ = ("capacity", "level", "rate", "seconds", "updated")

    def __init__(self, rate: float, seconds: float, *, now: float = 0.0, level: float | None = None) -> None:
        self.rate = rate
        self.seconds = seconds
        self.capacity = rate * seconds
        self.level = self.capacity if level is None else level
        self.updated = now

    def room(self, now: float, units: float, count: int = 1) -> int:
        """Return how many of `count` requests of `units` each fit now. Nothing is taken."""
        level = self.level
        if now > self.updated:
            level += (now - self.updated) * self.rate
            level = min(level, self.capacity)
            self.level = level
            self.updated = now
        if not units or units * count <= level + _SMALL:
            return count
        fitting = int((level + _SMALL) / units)
        if fitting > 0:
            return fitting
        return 1 if level >= self.capacity > 0 else 0

    def take(self, units: float) -> None:
        """Consume units, below zero if they are more than there are."""
        self.level -= units

    def set_rate(self, now: float, rate: float) -> None:
        """Change the rate from now on. What has been saved is kept, as far as the bucket can hold it."""
        self.room(now, 0.0)
        self.rate = rate
        self.capacity = rate * self.seconds
        self.level = min(self.level, self.capacity)
