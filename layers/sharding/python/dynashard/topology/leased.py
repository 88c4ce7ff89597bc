"""Views under a lease: read once, used until the lease ends, and never after.

A change of a count publishes its phases one lease apart, so that no two clients ever are more than one phase apart.
That holds because nobody works under a view that has expired, and because the lease is counted on the wall clock from
before the read was sent: the monotonic clock of a frozen Lambda stands still.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.topology.records import Record, family_of, founded, index_key, partition_key
from dynashard.topology.table import TopologyTable
from dynashard.topology.views import View
from dynashard.transport.interface import Transport

DEFAULT_LEASE: Final = 30.0
"""Seconds."""
_PARTITIONS: Final = 10_000
"""Views of single logical partitions that are kept; beyond it those that were used longest ago are read again."""
_STRIPES: Final = 64

_BARE: Final = View(UNSHARDED)


@dataclass(frozen=True, slots=True)
class _Held:
    """A view, and from when on it holds."""

    read: float
    view: View


@dataclass(frozen=True, slots=True)
class _Entity:
    """What holds for all logical partitions of an entity.

    Attributes:
        common: the view of those without a record of their own.
        differ: whether some may have one.
        indexes: the views of its sharded indexes, by slot.
    """

    common: _Held
    differ: bool
    indexes: Mapping[str, View] = field(default_factory=dict)


class LeasedTopology:
    """A `Topology` kept in a table. Safe to share between threads.

    The first one to ask for an entity writes its declared counts down. From then on the table says how many shards
    there are: to declare another number later moves nothing and hides nothing.

    Args:
        transport: the wire.
        table: the topology table's name.
        lease: how long a view may be used, in seconds. The records may demand less.
        clock: the wall clock, in epoch seconds.
    """

    def __init__(
        self,
        transport: Transport,
        table: str,
        *,
        lease: float = DEFAULT_LEASE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if lease <= 0:
            raise ConfigurationError("the lease of a view must be above 0 seconds")
        self._table = TopologyTable(transport, table)
        self._lease = lease
        self._clock = clock
        self._entities: dict[str, _Entity] = {}
        self._partitions: OrderedDict[str, _Held] = OrderedDict()
        self._lock = Lock()
        self._loading = [Lock() for _ in range(_STRIPES)]

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """The view of a logical partition.

        Cost: none while the lease lasts. Once a lease, 1 round trip for the entity, with 1 read unit for each record;
        if single partitions of it differ, 1 more for each that is used.
        """
        if entity.shards is None:
            return _BARE
        known = self._entity(entity)
        if not known.differ:
            return known.common.view
        return self._own(entity, partition).view

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """The view of an index. Cost: that of `view`; both come with one read."""
        if entity.shards is None and index.shards is None:
            return _BARE
        known = self._entity(entity)
        view = known.indexes.get(index.slot)
        return view or View(UNSHARDED, expires=known.common.view.expires, marks=known.common.view.marks)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget what is known of the entity and of this logical partition."""
        with self._lock:
            self._entities.pop(entity.name, None)
            self._partitions.pop(partition_key(entity, partition), None)

    def _entity(self, entity: EntityDefinition[Any]) -> _Entity:
        known = self._entities.get(entity.name)
        if known is not None and self._holds(known.common):
            return known
        with self._loading[hash(entity.name) % _STRIPES]:
            known = self._entities.get(entity.name)
            if known is not None and self._holds(known.common):
                return known
            known = self._read_entity(entity)
            self._entities[entity.name] = known
            return known

    def _own(self, entity: EntityDefinition[Any], partition: str) -> _Held:
        key = partition_key(entity, partition)
        held = self._kept(key)
        if held is not None:
            return held
        with self._loading[hash(key) % _STRIPES]:
            held = self._kept(key)
            if held is None:
                held = self._read_partition(entity, key)
                with self._lock:
                    self._partitions[key] = held
                    while len(self._partitions) > _PARTITIONS:
                        self._partitions.popitem(last=False)
        return held

    def _kept(self, key: str) -> _Held | None:
        with self._lock:
            held = self._partitions.get(key)
            if held is None or not self._holds(held):
                return None
            self._partitions.move_to_end(key)
            return held

    def _holds(self, held: _Held) -> bool:
        # A clock that was set back says nothing about how long a view has been held.
        return held.read <= self._clock() < held.view.expires

    def _read_entity(self, entity: EntityDefinition[Any]) -> _Entity:
        declared = self._declared(entity)
        now = self._clock()
        records = self._table.read(list(declared))
        for key, count in declared.items():
            if key not in records:
                records[key] = self._table.found(founded(key, count, now=now, lease=self._lease))
        family = records[family_of(entity)]
        marks = bool(family.active)
        indexes = {
            index.slot: self._view(records[index_key(entity, index)], now, marks=marks)
            for index in entity.indexes.values()
            if index.shards
        }
        return _Entity(
            _Held(now, self._view(family, now, marks=marks)), differ=family.differ_since is not None, indexes=indexes
        )

    def _read_partition(self, entity: EntityDefinition[Any], key: str) -> _Held:
        """Read with the family's record: what holds for a partition without a record must not be older than that."""
        now = self._clock()
        family = family_of(entity)
        records = self._table.read([family, key])
        common = records[family]
        return _Held(now, self._view(records.get(key, common), now, marks=bool(common.active)))

    def _declared(self, entity: EntityDefinition[Any]) -> dict[str, int]:
        """The records an entity needs, with the counts that it declares."""
        counts = {family_of(entity): entity.shards.initial if entity.shards else UNSHARDED}
        for index in entity.indexes.values():
            if index.shards:
                counts[index_key(entity, index)] = index.shards.initial
        return counts

    def _view(self, record: Record, now: float, *, marks: bool) -> View:
        lease = min(self._lease, record.lease) if record.lease > 0 else self._lease
        return record.view(now + lease, marks=marks)
