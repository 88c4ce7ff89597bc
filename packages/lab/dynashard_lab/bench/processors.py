"""Restrict this process to some of its processors, as a small function or container has them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def available() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@contextmanager
def processors(count: int | None) -> Iterator[None]:
    """Let all threads of this process use only `count` processors until the block ends; None for no restriction.

    Servers that run already keep theirs. On other systems than Linux nothing is restricted.
    """
    if count is None or sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    _restrict(set(sorted(before)[:count]))
    try:
        yield
    finally:
        _restrict(before)


def _restrict(allowed: set[int]) -> None:
    if sys.platform == "linux":
        for task in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):  # a thread that has ended meanwhile
                os.sched_setaffinity(int(task.name), allowed)
