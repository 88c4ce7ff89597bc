"""What every part of the controller and the mover uses, in one frozen object."""

import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import TopologyChangedError
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
    """Return an id that no other change has."""
    return secrets.token_urlsafe(9)


@dataclass(frozen=True, slots=True)
class Context:
    """The arguments of `Resharder`, with the tables and families that they stand for.

    Attributes:
        topology: the topology table.
        progress: the progress items in it.
        families: the entities by family.
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
        """Return the wall clock, in epoch seconds."""
        return self.runtime.clock()

    @property
    def entities(self) -> list[EntityDefinition[Any]]:
        """All entities whose counts may change."""
        return [member for family in self.families.values() for member in family.members]

    def scope(self, key: str) -> Scope:
        """Return the scope of a record's key; raises `ConfigurationError` for one of an unknown entity."""
        return Scope.of_key(key, self.entities)

    def read(self, scope: Scope) -> tuple[Record | None, Record | None]:
        """Return the record of a scope and that of its family, if they exist. Cost: 1 round trip, 2 read units."""
        records = self.topology.read([scope.key, scope.family])
        return records.get(scope.key), records.get(scope.family)

    def keep_lease(self, family: Record) -> bool:
        """Bring the lease of a family's record, which was just read, one step closer to the setting of this process.

        Every wait between two phases is as long as the longest lease in force. So a lowered setting shortens the waits
        only after the leases that were granted before have ended; a raised one is stored only while nothing changes.

        Returns whether the record has changed since. Cost: none if the stored lease is the setting's; else 1 round
        trip, 1 write unit. Lowering takes two steps.
        """
        now, lease = self.clock(), self.timing.lease
        if family.former_lease and family.lowered_at is None:
            # The record has the lowered lease: from now on the former one is no longer granted.
            changed = family.changed(now, lowered_at=now)
        elif family.granted > lease:
            changed = family.changed(now, lease=lease, former_lease=self.timing.longest(family, now), lowered_at=None)
        elif family.granted < lease and not family.active:
            changed = family.changed(now, lease=lease)
        else:
            return False
        with suppress(TopologyChangedError):
            self.topology.save((family, changed))
        return True

    def left(self, family: Record, published: float, now: float) -> float:
        """Return the seconds until a publication has reached every client; see `Timing.over`."""
        return self.timing.over(family, published, now) - now
