"""Keeps Ctrl-C from being lost.

Python raises `KeyboardInterrupt` wherever the main thread is. In a finaliser, or in a callback of a weak reference, no
caller can catch it: Python gives it to `sys.unraisablehook`, which prints it, and the command would go on for ever.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dynashard_tools.failure import INTERRUPTED

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_SECONDS: Final = 0.01
"""After so long a finaliser is likely to have ended. If not, or in the next one, it is raised once more."""


@contextmanager
def ends_at_once() -> Iterator[None]:
    """End the process at Ctrl-C with one line and without an exception. For imports, before anything is done.

    Many imports run code that does not expect `KeyboardInterrupt`: some ignore it, and the process crashed if it was
    raised while msgspec made a class.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _in_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _end(*_: object) -> None:
    print("error: interrupted; nothing was done", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


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
