"""A machine that has no more threads for a process."""

from typing import Any, NoReturn


def no_more_threads(*_: Any) -> NoReturn:
    """Stand in for `Thread.start`, which fails so."""
    raise RuntimeError("can't start new thread")
