"""Waits for locks of the layer, which fail at once if they have no end, instead of stopping the test."""

import pytest

from dynashard import waiting
from dynashard.waiting import Wakeup


class _Bounded:
    """A wakeup that refuses to be waited for without an end."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._wakeup = wakeup

    def set(self) -> None:
        self._wakeup.set()

    def wait(self, seconds: float | None = None) -> bool:
        assert seconds is not None, "this wait has no end"
        return self._wakeup.wait(seconds)


def refuse_endless_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits for a `Turn` fail that have no deadline, of threads and of tasks."""
    make = waiting.wakeup
    monkeypatch.setattr(waiting, "wakeup", lambda: _Bounded(make()))
