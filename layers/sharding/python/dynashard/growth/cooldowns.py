"""The times in which the growth policy of a process leaves a count or a question alone."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from dynashard.growth.settings import GrowthSettings
from dynashard.runtime import Runtime
from dynashard.transport.forks import own_lock

_REMEMBERED: Final = 10_000
"""Partitions and limits that one process remembers."""


@dataclass(frozen=True, slots=True)
class _Cooldown:
    """A time in which something is left alone; `waits` if this is the random wait before a request."""

    since: float
    until: float
    waits: bool = False


class Cooldowns:
    """The cooldowns of one process by key, the last 10,000 of them. Safe to share between threads."""

    def __init__(self, settings: GrowthSettings, runtime: Runtime) -> None:
        self._settings = settings
        self._runtime = runtime
        self._lock = own_lock(self)
        self._of: OrderedDict[str, _Cooldown] = OrderedDict()

    def claim(self, key: str, seconds: float) -> bool:
        """Begin a cooldown of so many seconds, unless one is under way; whether it was begun."""
        now = self._runtime.clock()
        with self._lock:
            cooldown = self._of.get(key)
            # A clock that was set back does not tell how long the cooldown has lasted.
            if cooldown is not None and cooldown.since <= now < cooldown.until:
                return False
            self._remember(key, _Cooldown(now, now + seconds))
            return True

    def begin(self, key: str, until: float) -> None:
        """Begin a cooldown that lasts until a time, in epoch seconds, whatever is under way."""
        with self._lock:
            self._remember(key, _Cooldown(self._runtime.clock(), until))

    def waits(self, key: str) -> bool:
        """Begin the random wait before a request, or continue it; False once it is over."""
        now = self._runtime.clock()
        with self._lock:
            wait = self._of.get(key)
            if wait is not None and wait.since <= now < wait.until:
                return True
            if wait is not None and wait.waits and wait.until <= now < wait.until + self._settings.cooldown_seconds:
                return False
            self._remember(key, _Cooldown(now, now + self.drawn_wait(), waits=True))
            return True

    def wait_again(self, key: str) -> None:
        """Begin another random wait, whatever is under way."""
        now = self._runtime.clock()
        with self._lock:
            self._remember(key, _Cooldown(now, now + self.drawn_wait(), waits=True))

    def drawn_wait(self) -> float:
        """Return a random wait within the bounds of the settings, in seconds."""
        low, high = self._settings.wait_low, self._settings.wait_high
        return low + self._runtime.random() * (high - low)

    def _remember(self, key: str, cooldown: _Cooldown) -> None:
        self._of[key] = cooldown
        self._of.move_to_end(key)
        while len(self._of) > _REMEMBERED:
            self._of.popitem(last=False)
