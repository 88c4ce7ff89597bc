"""Processors of this machine for the workers of a parallel run."""

import os
from typing import Final

_USABLE: Final = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""Those that this process may use. Empty where the system cannot say."""


def pin(number: int) -> None:
    """Run this process, and those that it starts from now on, on one processor; `number` chooses it.

    A test and its engine take turns. On one processor a request costs about three quarters of what it costs on two,
    because no answer has to wake a sleeping processor.
    """
    if _USABLE:
        os.sched_setaffinity(0, {_USABLE[number % len(_USABLE)]})


def unpin() -> None:
    """Undo `pin` for this process, and for those that it starts from now on."""
    if _USABLE:
        os.sched_setaffinity(0, _USABLE)
