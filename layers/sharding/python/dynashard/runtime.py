"""Time and randomness, passed in by whoever builds a part of the layer."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Runtime:
    """Where a part takes time and randomness from.

    Attributes:
        clock: the wall clock, in epoch seconds.
        sleep: waits so many seconds.
        random: draws numbers, evenly from 0 to below 1.
    """

    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random


SYSTEM: Final = Runtime()
"""That of the process."""
