"""Keeps Ctrl-C from being lost.

Python raises `KeyboardInterrupt` wherever the main thread is. In a finaliser, or in a callback of a weak reference, no
caller can catch it: Python gives it to `sys.unraisablehook`, which prints it, and the command would go on for ever.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_SECONDS: Final = 0.01
"""After so long a finaliser is likely to have ended. If not, or in the next one, it is raised once more."""


@contextmanager
def not_lost() -> Iterator[None]:
    """Raise `KeyboardInterrupt` again in the main thread if a finaliser has dropped it."""
    others = sys.unraisablehook

    def again(dropped: "UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            others(dropped)
            return
        # Raised at once it would be dropped again: the finaliser has not ended. The alarm also ends a blocking read.
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = others
