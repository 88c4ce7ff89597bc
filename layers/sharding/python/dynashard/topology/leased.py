"""Views under a lease: read once, used until the lease ends, and never after.

A change of a count publishes its phases more than a lease apart, so that no two clients ever are more than one phase
apart. That holds because nobody works under a view that has expired, and because the lease counts from before the
read was sent.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.schema import MAX_PARTITION_KEY_BYTES
from dynashard.topology.leases import Leases
from dynashard.topology.records import DEFAULT_LEASE, Record, family_of, first_record, index_key, partition_key
from dynashard.topology.table import TopologyTable
from dynashard.topology.views import View
from dynashard.transport.interface import Transport

_ENTITIES: Final = 1_000
_PARTITIONS: Final = 10_000
"""Views of single logical partitions that are kept; beyond it those that were read longest ago are read again."""

_BARE: Final = View(UNSHARDED)


@dataclass(frozen=True, slots=True)
class _Common:
    """What holds for all logical partitions of an entity.

    Attributes:
        view: the view of those without a record of their own.
        differ: whether some may have one.
        indexes: the views of its indexes, by slot.
    """

    view: View
    differ: bool
    indexes: Mapping[str, View]


class LeasedTopology:
    """A `Topology` kept in a table. Safe to share between threads.

    The first one to ask for an entity writes its declared counts down. From then on the table says how many shards
    there are: to declare another number later moves nothing and hides nothing.

    Args:
        transport: the wire.
        table: the topology table's name.
        lease: how long a view may be used, in seconds. The record of the entity's family may demand less.
        clock: the wall clock, in epoch seconds.
        steady: a clock that is never set, in seconds.

    Raises:
        ConfigurationError: a lease of no length.

    What its methods raise beyond that is the transport's: without topology nothing can be routed.
    """

    def __init__(
        self,
        transport: Transport,
        table: str,
        *,
        lease: float = DEFAULT_LEASE,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        if not lease > 0:
            raise ConfigurationError("the lease of a view must be above 0 seconds")
        self._table = TopologyTable(transport, table)
        self._lease = lease
        # By definition, not name: it hashes at once, and entities of several registries may share a name.
        self._entities: Leases[EntityDefinition[Any], _Common] = Leases(clock, steady, limit=_ENTITIES)
        self._partitions: Leases[str, View] = Leases(clock, steady, limit=_PARTITIONS)

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """The view of a logical partition, prefix included: `user.v1.User:abc`.

        Cost: none while the lease lasts. Once a lease, 1 round trip for the entity, with 1 read unit for each record:
        its family's and one a sharded index. If single partitions of it differ, 1 round trip and 2 read units more
        for each that is used.
        """
        if entity.shards is None:
            return _BARE
        common = self._entities.get(entity) or self._common(entity)
        return self._own(entity, partition) if common.differ else common.view

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """The view of an index. Cost: that of `view`; both come with one read."""
        if entity.shards is None and index.shards is None:
            return _BARE
        common = self._entities.get(entity) or self._common(entity)
        return common.indexes[index.slot]

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget what is known of the entity and of this logical partition.

        Cost: that of `view`, at the next one.
        """
        self._entities.forget(entity)
        self._partitions.forget(partition_key(entity, partition))

    def _common(self, entity: EntityDefinition[Any]) -> _Common:
        return self._entities.renew(entity, lambda now: self._read_common(entity, now))

    def _own(self, entity: EntityDefinition[Any], partition: str) -> View:
        key = partition_key(entity, partition)
        view = self._partitions.get(key)
        return view or self._partitions.renew(key, lambda now: self._read_own(entity, key, now))

    def _read_common(self, entity: EntityDefinition[Any], now: float) -> tuple[_Common, float]:
        indexes = entity.indexes.values()
        records = self._records(
            _family_count(entity) | {index_key(entity, each): each.shards.initial for each in indexes if each.shards},
            now,
        )
        family = records[family_of(entity)]
        lease = min(self._lease, family.granted)
        expires, marks = now + lease, bool(family.active)
        # Items move, and their index entries with them, only between two writes of the family's record.
        version = str(family.updated)
        bare = View(UNSHARDED, expires=expires, marks=marks, version=version)
        views = {
            each.slot: records[index_key(entity, each)].view(expires, marks=marks, version=version)
            if each.shards
            else bare
            for each in indexes
        }
        return _Common(family.view(expires, marks=marks), family.differ_since is not None, views), lease

    def _read_own(self, entity: EntityDefinition[Any], key: str, now: float) -> tuple[View, float]:
        """Read with the family's record: what holds for a partition without a record must not be older than that."""
        # A key that is too long for the table has no record.
        more = [key] if len(key.encode()) <= MAX_PARTITION_KEY_BYTES else []
        records = self._records(_family_count(entity), now, more)
        family = records[family_of(entity)]
        lease = min(self._lease, family.granted)
        return records.get(key, family).view(now + lease, marks=bool(family.active)), lease

    def _records(self, counts: Mapping[str, int], now: float, more: Sequence[str] = ()) -> dict[str, Record]:
        """The records with these keys, written with these counts if there is none; and those of `more` that are."""
        records = self._table.read([*counts, *more])
        for key, count in counts.items():
            if key not in records:
                records[key] = self._table.create(first_record(key, count, now=now, lease=self._lease))
        return records


def _family_count(entity: EntityDefinition[Any]) -> dict[str, int]:
    return {family_of(entity): entity.shards.initial if entity.shards else UNSHARDED}
