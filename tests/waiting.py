"""How long tests wait for something that surely happens: far longer than it takes on a machine that is busy.

A passing test never waits that long. The limit only decides how soon a hang is reported.
"""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Final

HANG_SECONDS: Final = 300.0
"""A wait that takes longer is a hang."""


def until(holds: Callable[[], bool], pause: float = 0.01, sleep: Callable[[float], object] | None = None) -> None:
    """Return once a condition holds; it is checked every `pause` seconds, for which `sleep` waits.

    Raises:
        AssertionError: it does not hold after `HANG_SECONDS`.
    """
    deadline, sleep = monotonic() + HANG_SECONDS, sleep or Event().wait
    while not holds():
        assert monotonic() < deadline, "the condition did not hold in time"
        sleep(pause)
