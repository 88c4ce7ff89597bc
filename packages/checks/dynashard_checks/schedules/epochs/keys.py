"""Keys that begin with their time, near the moments at which an epoch begins."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

from ksuid import Ksuid

from dynashard.key_clock import DEFAULT_BOUNDS
from dynashard.key_time import KSUID
from dynashard_checks.schedules.history import Key

_BOUNDS: Final = DEFAULT_BOUNDS
_CRITICAL: Final = (-39.0, -36.0, -32.0, -28.0, -26.0, -15.0, -12.0, -10.0, -10.0, -8.0, -5.0, -1.0, 0.0, 1.0)
"""Seconds from the beginning of an epoch to moments at which views are read that its publication may overtake, and at
which its first keys can be placed for the first time."""
_FAR: Final = (30.0, 60.0, 90.0, 600.0)
_MOST_KEYS: Final = 8
"""Keys that are in use at a time. Older ones are only read at the end."""
_PAYLOAD_BITS: Final = 128


def ksuid(at: float, payload: int) -> Key:
    """Return the KSUID of a second with a payload of 128 bits."""
    return str(Ksuid(datetime.fromtimestamp(int(at), UTC), payload.to_bytes(_PAYLOAD_BITS // 8)))


@dataclass
class Beginnings:
    """When epochs begin, in epoch seconds; those as well that are not stored yet, or never will be.

    `published` are moments at which late requests store epochs.
    """

    moments: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)

    def add(self, first: Key) -> None:
        """Add the first sort key of an epoch."""
        moment = KSUID.moment_of(first)
        if moment not in self.moments:
            self.moments.append(moment)

    def new_key(self, random: Random, now: float) -> Key:
        """Draw a new key, as a process makes it whose clock is at `now`, or one whose time is critical.

        Some lie too far ahead to be written or read.
        """
        times = [now, now - 1, now - 3, now + _BOUNDS.ahead, now + _BOUNDS.ahead, now + _BOUNDS.readable]
        critical = [
            moment + distance
            for moment in self.moments[-4:]
            for distance in (-1.0, 0.0, 0.0, 0.0, 1.0)
            if moment + distance <= now + _BOUNDS.placed
        ]
        if critical and random.random() < 0.6:
            times = critical
        elif random.random() < 0.05:
            times = [now + far for far in _FAR]
        return ksuid(random.choice(times), random.choice((0, *(random.getrandbits(_PAYLOAD_BITS) for _ in range(3)))))

    def next_critical(self, random: Random, now: float) -> float:
        """Draw a moment from now on at which a process with a right clock acts near the beginning of an epoch."""
        later = [moment + distance for moment in self.moments[-4:] for distance in _CRITICAL if moment + distance > now]
        overtaken = [moment - random.choice((0.1, 1.0, 3.0)) for moment in self.published if moment - 3.0 > now]
        if overtaken and random.random() < 0.7:
            return random.choice(overtaken)
        return random.choice(later) if later else now


def in_use(keys: tuple[Key, ...], new: Key, random: Random) -> tuple[Key, ...]:
    """Return the keys in use after a new one was made."""
    kept = list(dict.fromkeys((*keys, new)))
    if len(kept) > _MOST_KEYS:
        kept.pop(random.randrange(len(kept) - 1))
    return tuple(kept)
