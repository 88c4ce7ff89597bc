"""What every part of the controller and the mover needs, in one frozen object."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.resharding.progress import ProgressTable
from dynashard.resharding.scope import Family, Scope
from dynashard.resharding.timing import Timing
from dynashard.runtime import SYSTEM, Runtime
from dynashard.topology import Record, TopologyTable
from dynashard.transport.interface import Transport

SEGMENTS: Final = 16
"""Tasks of a change that concerns the whole table."""
WIDTH: Final = 16
"""Writes of a task that are under way at a time."""


def fresh_change_id() -> str:
    """An id that no other change has."""
    return secrets.token_urlsafe(9)


@dataclass(frozen=True, slots=True)
class Context:
    """Tables, the way to them, and the sources of time and randomness.

    Attributes:
        transport: the wire.
        table: the items' table.
        topology: the topology table.
        progress: the progress items in it.
        families: the entities by family.
        timing: how long a phase takes to reach everybody.
        runtime: time and randomness.
        new_id: makes ids of changes.
        concurrency: tasks that are worked on at a time.
        segments: tasks of a change that concerns the whole table.
    """

    transport: Transport
    table: str
    topology: TopologyTable
    progress: ProgressTable
    families: Mapping[str, Family]
    timing: Timing
    runtime: Runtime = SYSTEM
    new_id: Callable[[], str] = fresh_change_id
    concurrency: int = 4
    segments: int = SEGMENTS

    def clock(self) -> float:
        """The wall clock, in epoch seconds."""
        return self.runtime.clock()

    @property
    def entities(self) -> list[EntityDefinition[Any]]:
        """All entities."""
        return [member for family in self.families.values() for member in family.members]

    def scope(self, key: str) -> Scope:
        """What a record concerns; raises `ConfigurationError` for one of an unknown entity."""
        return Scope.of_key(key, self.entities)

    def read(self, scope: Scope) -> tuple[Record | None, Record | None]:
        """The record of a scope and that of its family, if they exist. Cost: 1 round trip, 2 read units."""
        records = self.topology.read([scope.key, scope.family])
        return records.get(scope.key), records.get(scope.family)

    def left(self, family: Record, published: float, now: float) -> float:
        """Seconds until a publication has reached everybody; see `Timing.over`."""
        return self.timing.over(family, published, now) - now
