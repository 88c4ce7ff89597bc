"""How long tests wait for something that surely happens: far longer than it takes on a machine that is busy.

A passing test never waits that long. The limit only decides how soon a hang is reported.
"""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Final

HANG_SECONDS: Final = 300.0
"""A wait that takes longer is a hang."""


def until(holds: Callable[[], bool], pause: float = 0.01) -> None:
    """Return once a condition holds; it is checked every `pause` seconds.

    Raises:
        AssertionError: it does not hold after `HANG_SECONDS`.
    """
    deadline, waiting = monotonic() + HANG_SECONDS, Event()
    while not holds():
        assert monotonic() < deadline, "the condition did not hold in time"
        waiting.wait(pause)
