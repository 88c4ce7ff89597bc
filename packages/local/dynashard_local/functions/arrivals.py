"""Reports to event loops that something has arrived from environments."""

import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import NamedTuple

from dynashard_local.functions.environment import Environment

Arrived = Callable[[Environment, AbstractEventLoop], bool]
"""Takes what has arrived for a loop, on its thread. Returns False if the loop has sent nothing to this environment, or
the environment has ended."""


class _Watched(NamedTuple):
    loop: AbstractEventLoop
    descriptor: int


class Arrivals:
    """Watches environments from the first call that a loop sends to them.

    To register a descriptor for each call takes a fifteenth of what the server needs for a request. So an environment
    stays registered while it is idle, by a copy of its descriptor that only the loop closes. The environment itself can
    be used and ended by threads: a loop that finds something which it does not expect stops watching.
    """

    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived
        self._watched: dict[Environment, _Watched] = {}

    def watch(self, environment: Environment, loop: AbstractEventLoop) -> None:
        """Let a loop take what arrives from an environment."""
        before = self._watched.get(environment)
        if before is not None and before.loop is loop:
            return
        if before is not None and before.loop.is_closed():
            os.close(before.descriptor)
        watched = self._watched[environment] = _Watched(loop, os.dup(environment.fileno()))
        loop.add_reader(watched.descriptor, self._readable, environment, watched)

    def _readable(self, environment: Environment, watched: _Watched) -> None:
        if self._arrived(environment, watched.loop):
            return
        watched.loop.remove_reader(watched.descriptor)
        os.close(watched.descriptor)
        if self._watched.get(environment) is watched:
            del self._watched[environment]
