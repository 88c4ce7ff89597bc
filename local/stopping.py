"""Stop the local stack by SIGINT or SIGTERM from its first moment on, also where it inherited that they are ignored.

A shell without job control starts background jobs with SIGINT ignored, and every process they start inherits that.
This module imports next to nothing, so that the handlers are installed before the imports that take long.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPED = b"\nStopped.\n"

_requested = False
_deferring = False


def stop_at_once() -> None:
    """From now on, end the process on a signal. Call it while there is nothing to clean up."""
    for number in _SIGNALS:
        signal.signal(number, _exit)


def stop_in_order() -> None:
    """From now on, raise `KeyboardInterrupt` in the main thread on the first signal, and ignore all that follow it."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)


def check() -> None:
    """Raise `KeyboardInterrupt` if a signal has come.

    An exception that is raised while Python runs a finaliser is printed and dropped: a stage that must not begin
    after a signal asks here.
    """
    if _requested:
        raise KeyboardInterrupt


@contextmanager
def deferred() -> Iterator[None]:
    """Let a signal that comes within the block take effect at its end, so that it cuts nothing in two."""
    global _deferring  # noqa: PLW0603 - signals belong to the process
    _deferring = True
    try:
        yield
    finally:
        _deferring = False
    check()


def _exit(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, _STOPPED)
    os._exit(0)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    global _requested  # noqa: PLW0603 - signals belong to the process
    if _requested:
        return
    _requested = True
    if not _deferring:
        raise KeyboardInterrupt
