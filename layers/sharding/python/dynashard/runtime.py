"""Time and randomness of a process, passed in so that tests can replace them."""

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from dynashard.waiting import sleep


class Runtime(NamedTuple):
    """Where the layer takes time and randomness from.

    `clock` is the wall clock in epoch seconds, and `monotonic` one that is never set, in seconds. `sleep` waits so many
    seconds. `random` draws evenly from 0 to below 1.
    """

    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = sleep
    random: Callable[[], float] = random.random
    monotonic: Callable[[], float] = time.monotonic


SYSTEM: Final = Runtime()
"""The system's clocks and random numbers."""
