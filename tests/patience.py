"""How long tests wait for what surely comes: far longer than that takes on a machine that is busy with other work.

When all is well nobody waits for it. It decides how soon a hang is told, and nothing else.
"""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Final

PATIENCE_SECONDS: Final = 300.0


def until(holds: Callable[[], bool], pause: float = 0.01) -> None:
    """Return once a condition holds, which is looked at every `pause` seconds.

    Raises:
        AssertionError: it does not hold after `PATIENCE_SECONDS`.
    """
    deadline, waiting = monotonic() + PATIENCE_SECONDS, Event()
    while not holds():
        assert monotonic() < deadline, "waited in vain"
        waiting.wait(pause)
