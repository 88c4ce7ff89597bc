"""Whether items may have moved while the table was read.

An item that moves to a place that was read before is missed. The record of a family changes with every change of a
shard count of the family, so a pass that begins and ends with the same record has missed nothing.
"""

from collections.abc import Callable
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.placement import UNSHARDED
from dynashard.runtime import Runtime
from dynashard.topology import DEFAULT_LEASE, Record, TopologyTable, family_of
from dynashard.topology.records import first_record

_POLL: Final = 1.0
"""Seconds between looks at a shard count that is changing."""


class Movements:
    """Movements of the items of one entity.

    Args:
        topology: the table of shard counts.
        entity: whose items are read.
        runtime: the clock and the waits.
        lease: with which the family's record is created if there is none, in seconds.

    Attributes:
        possible: whether items move at all. Without one home, or with one by the time of its key, an item stays where
            it was stored.
    """

    def __init__(
        self, topology: TopologyTable, entity: EntityDefinition[Any], runtime: Runtime, *, lease: float = DEFAULT_LEASE
    ) -> None:
        self._topology, self._entity, self._runtime, self._lease = topology, entity, runtime, lease
        self._family = family_of(entity)
        self.possible = entity.rule.fixed and entity.time is None

    def settled(self, wait: Callable[[], bool] = lambda: True) -> Record | None:
        """Return the record of the family once no shard count of it is changing.

        `wait` is called before each wait; if it returns false, so that the caller gives up, None is returned.

        Cost: 1 round trip, 1 read unit; 1 write unit if there is no record; the same for every second that it waits.
        """
        while True:
            record = self._topology.find(self._family) or self._created()
            if not record.active or not self.possible:
                return record
            if not wait():
                return None
            self._runtime.sleep(_POLL)

    def since(self, version: str) -> bool:
        """Whether items may have moved since the record had a version. Cost: 1 round trip, 1 read unit."""
        if not self.possible:
            return False
        record = self._topology.find(self._family)
        return record is None or version_of(record) != version

    def _created(self) -> Record:
        shards = self._entity.shards
        count = shards.initial if shards else UNSHARDED
        return self._topology.create(first_record(self._family, count, now=self._runtime.clock(), lease=self._lease))


def version_of(family: Record) -> str:
    """Return what differs after every resize of the family."""
    # A record that was just created has the zeros that are not stored.
    return f"{family.updated.normalize():f}"
