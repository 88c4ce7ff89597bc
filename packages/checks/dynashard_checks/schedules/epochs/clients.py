"""Clients of entities that are placed by epochs: their keys have times, and their clocks may be off."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynashard.key_time import KSUID
from dynashard.routing import Router
from dynashard.topology import Topology
from dynashard_checks.schedules.clients import Client
from dynashard_checks.schedules.epochs.keys import Beginnings, in_use
from dynashard_checks.schedules.epochs.truth import Placements, WatchedRouter
from dynashard_checks.schedules.history import Key
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.scheduler import Actor, AnomalyError
from dynashard_checks.schedules.traffic import Traffic

_NEW_SHARE = 0.4
"""The share of operations on a new key."""
_SETTING_SHARE = 0.2
"""The share of operations before which a clock is set that is to be set."""
_WRITING = frozenset({"create", "put", "update", "delete", "batch_write"})


class TimedClient(Client):
    """A client of an entity that is placed by epochs.

    Args:
        traffic: the state that all clients share.
        actor: takes its turns.
        process: its clock.
        placements: gets the places of its keys.
        beginnings: when epochs begin.
        offs: by how many seconds its clock is ahead each time that it is set, between two operations; the last first.
    """

    def __init__(
        self,
        traffic: Traffic,
        actor: Actor,
        process: Process,
        placements: Placements,
        beginnings: Beginnings,
        *,
        offs: Sequence[float] = (),
    ) -> None:
        self._placements = placements
        self._beginnings = beginnings
        self._offs = list(offs)
        super().__init__(traffic, actor, process)

    def operate(self, kind: str) -> None:
        """See `Client.operate`."""
        if self._offs and self._random.random() < _SETTING_SHARE:
            self.process.set_clock(self._offs.pop())
        super().operate(kind)

    def _router(self, topology: Topology) -> Router:
        return WatchedRouter(topology, self.process, self._placements, self._actor.name)

    def _key(self) -> Key:
        random, traffic = self._random, self._traffic
        if traffic.keys and random.random() >= _NEW_SHARE:
            return random.choice(traffic.keys)
        new = self._beginnings.new_key(random, self.process.clock())
        traffic.keys = in_use(traffic.keys, new, random)
        return new

    def _question(self) -> dict[str, Any]:
        asked = super()._question()
        if "prefix" in asked and "index" not in asked:
            del asked["prefix"]
            moments = [self._scheduler.now, *self._beginnings.moments]
            bound = self._random.choice(("start", "end"))
            asked[bound] = KSUID.first(self._random.choice(moments) + self._random.choice((-1.0, 0.0, 1.0)))
        return asked

    @contextmanager
    def _operation(self, kind: str, *keys: Key, **more: Any) -> Iterator[Operation]:
        with super()._operation(kind, *keys, **more) as operation:
            yield operation
            if self.process.beyond and kind in _WRITING:
                raise AnomalyError(f"{kind} of {keys} was accepted from {self._actor.name}, whose clock is off")
