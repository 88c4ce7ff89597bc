"""Time and randomness of a process, passed in so that tests can replace them; and the optional package."""

import random
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple


class Runtime(NamedTuple):
    """Where the layer takes time and randomness from.

    `clock` is the wall clock in epoch seconds, and `monotonic` one that is never set, in seconds. `sleep` waits so many
    seconds. `random` draws evenly from 0 to below 1.
    """

    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    monotonic: Callable[[], float] = time.monotonic


SYSTEM: Final = Runtime()
"""The system's clocks and random numbers."""


def direct_module(name: str) -> Any:
    """Return a module of the package `dynashard_direct`, which is optional and imports this layer; None without it."""
    return None if find_spec("dynashard_direct") is None else import_module(f"dynashard_direct.{name}")
