"""Carries out resizes of shard counts, as the state machine of a deployment does."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from dynashard.errors import DynashardError
from dynashard.growth.requests import shrink_quiet
from dynashard.growth.settings import GrowthSettings
from dynashard.resharding import Resharder
from dynashard_lab.simulate.actors import Actors

_POLL: Final = 1.0
"""Seconds between polls, about as long as the stream of the topology table takes to start a resize."""
_HOUR: Final = 3_600.0
"""Seconds between two looks for counts that are quiet."""
_SLICE: Final = 10.0
"""Seconds that a task is worked on at a time."""
_AGAIN: Final = 2.0
"""Seconds after a failure."""


class Driver:
    """Polls for unfinished resizes, and carries out each in actors of its own.

    `poll` returns their keys. It stands for the stream of the topology table, which costs no units.
    """

    def __init__(self, actors: Actors, resharder: Resharder, poll: Callable[[], Iterable[str]]) -> None:
        self._actors = actors
        self._resharder = resharder
        self._poll = poll
        self._driven: set[str] = set()

    def run(self) -> None:
        """Poll for ever."""
        while True:
            for key in self._poll():
                if key not in self._driven:
                    self._driven.add(key)
                    self._actors.spawn(lambda key=key: self._carry_out(key))  # type: ignore[misc]
            self._actors.sleep(_POLL)

    def narrow(self, settings: GrowthSettings) -> None:
        """Request half of the counts that were quiet for long enough, every hour for ever."""
        while True:
            self._actors.sleep(_HOUR)
            shrink_quiet(self._resharder, settings=settings)

    def _carry_out(self, key: str) -> None:
        while True:
            try:
                step = self._resharder.advance(key)
                if step.kind == "work":
                    self._work(key, step.tasks, step.concurrency)
                    continue
            except DynashardError:
                self._actors.sleep(_AGAIN)
                continue
            if step.kind == "done":
                break
            self._actors.sleep(step.seconds)
        self._driven.discard(key)

    def _work(self, key: str, tasks: tuple[int, ...], concurrency: int) -> None:
        waiting = deque(tasks)

        def one_after_the_other() -> None:
            while waiting:
                task = waiting.popleft()
                while not self._resharder.work(key, task, seconds=_SLICE):
                    pass

        self._actors.gather([one_after_the_other] * min(concurrency, len(tasks)))
