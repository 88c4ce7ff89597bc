"""Stops the local stack by SIGINT or SIGTERM from its start, also if it has inherited that they are ignored.

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
    """End the process on a signal. Use it while there is nothing to clean up."""
    for number in _SIGNALS:
        signal.signal(number, _exit)


def stop_in_order() -> None:
    """Raise `KeyboardInterrupt` in the main thread on the first signal, and ignore later signals."""
    for number in _SIGNALS:
        signal.signal(number, _interrupt)


def check() -> None:
    """Raise `KeyboardInterrupt` if a signal has come.

    Call it before a stage that must not begin after a signal, because an exception in a finaliser is dropped.
    """
    if _requested:
        raise KeyboardInterrupt


@contextmanager
def deferred() -> Iterator[None]:
    """Defer a signal to the end of the block."""
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
