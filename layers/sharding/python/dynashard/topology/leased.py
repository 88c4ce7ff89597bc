"""Views under a lease: read once, and used only until the lease ends.

A resize publishes its phases more than a lease apart, so two clients are never more than one phase apart:
no operation uses an expired view, and the lease counts from before the read was sent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.runtime import SYSTEM, Runtime
from dynashard.schema import MAX_PARTITION_KEY_BYTES
from dynashard.topology.epochs import Epoch, EpochState
from dynashard.topology.leases import Leases
from dynashard.topology.records import DEFAULT_LEASE, Record, family_of, first_record, index_key, partition_key
from dynashard.topology.table import TopologyTable
from dynashard.topology.views import View
from dynashard.transport.interface import Transport

_ENTITIES: Final = 1_000
_PARTITIONS: Final = 10_000
"""Views of single logical partitions that are kept."""
_BARE: Final = View(UNSHARDED)


class _Shared(Struct, frozen=True):
    """The view of partitions without a record of their own, whether some `differ`, and the views of indexes by slot."""

    view: View
    differ: bool
    indexes: Mapping[str, View]


class LeasedTopology:
    """A `Topology` kept in a table. Safe to share between threads. Its methods raise what the transport raises.

    The first client that asks for an entity initialises its records from the declaration. From then on the table alone
    says how many shards there are: a changed declaration has no effect.

    Views may be used for `lease` seconds, less if the record of the entity's family demands it. A lease that is not
    above 0 raises `ConfigurationError`.
    """

    def __init__(
        self, transport: Transport, table: str, *, lease: float = DEFAULT_LEASE, runtime: Runtime = SYSTEM
    ) -> None:
        if not lease > 0:
            raise ConfigurationError(f"the lease of a view is {lease:g} seconds; it must be above 0 seconds")
        self._table = TopologyTable(transport, table)
        self._lease = lease
        self._clock = runtime.clock
        # By definition rather than name, because entities of several registries may share a name.
        self._entities: Leases[EntityDefinition[Any], _Shared] = Leases(runtime, limit=_ENTITIES)
        self._partitions: Leases[str, View] = Leases(runtime, limit=_PARTITIONS)

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """Return the view of a logical partition, prefix included: `user.v1.User:abc`.

        Cost: none while the lease lasts. Once a lease, 1 round trip for the entity, with 1 read unit for each record:
        its family's and one a sharded index. If single partitions of it differ, 1 round trip and 2 read units more
        for each that is used.
        """
        if entity.shards is None:
            return _BARE
        shared = self._entities.get(entity, lambda now: self._read_shared(entity, now))
        if not shared.differ:
            return shared.view
        key = partition_key(entity, partition)
        return self._partitions.get(key, lambda now: self._read_own(entity, key, now))

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """Return the view of an index. Cost: that of `view`; both come with one read."""
        if entity.shards is None and index.shards is None and not _may_lack(entity, index):
            return _BARE
        return self._entities.get(entity, lambda now: self._read_shared(entity, now)).indexes[index.slot]

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget the views of the entity and of this logical partition. Cost: that of the next `view`."""
        self._entities.forget(entity)
        self._partitions.forget(partition_key(entity, partition))

    def _read_shared(self, entity: EntityDefinition[Any], now: float) -> tuple[_Shared, float]:
        indexes = entity.indexes.values()
        counts = {index_key(entity, each): each.shards.initial for each in indexes if each.shards}
        records, family = self._records(entity, now, counts)
        lease = min(self._lease, family.granted)
        expires, markers = now + lease, bool(family.active)
        # Items move, and their index entries with them, only between two writes of the family's record.
        version = str(family.updated)
        bare = View(UNSHARDED, expires=expires, markers=markers, version=version)
        views = {
            each.slot: records[index_key(entity, each)].view(expires, markers=markers, version=version)
            if each.shards
            else bare
            for each in indexes
        }
        for each in indexes:
            if _may_lack(entity, each) and not _is_complete(entity, each, family):
                views[each.slot] = replace(views[each.slot], complete=False)
        shared = self._placing(entity, family.view(expires, markers=markers), now)
        return _Shared(shared, family.differ_since is not None, views), lease

    def _read_own(self, entity: EntityDefinition[Any], key: str, now: float) -> tuple[View, float]:
        # With the family's record: a partition without a record must not have an older view of the family.
        # A key that is too long for the table has no record.
        more = [key] if len(key.encode()) <= MAX_PARTITION_KEY_BYTES else []
        records, family = self._records(entity, now, {}, more)
        lease = min(self._lease, family.granted)
        view = records.get(key, family).view(now + lease, markers=bool(family.active))
        return self._placing(entity, view, now), lease

    def _records(
        self, entity: EntityDefinition[Any], now: float, counts: Mapping[str, int], more: Sequence[str] = ()
    ) -> tuple[dict[str, Record], Record]:
        """The records of a family and of `counts`, created if missing, those of `more` that exist; and the family's."""
        family = family_of(entity)
        counts = {family: entity.shards.initial if entity.shards else UNSHARDED, **counts}
        records = self._table.read([*counts, *more])
        for key, count in counts.items():
            if key not in records:
                records[key] = self._table.create(first_record(key, count, now=now, lease=self._lease))
        return records, records[family]

    def _placing(self, entity: EntityDefinition[Any], view: View, now: float) -> View:
        """Return a view, read at `now`, that can settle its epochs; refuse them if items are not placed by time."""
        epochs = view.epochs
        if epochs is None:
            return view
        if entity.time is not None:
            past, settle = entity.time.first(now), partial(self._settle, epochs.record)
            return replace(view, epochs=replace(epochs, past=past, settle=settle))
        counts = ", ".join(str(each.count) for each in epochs.entries)
        raise ConfigurationError(
            f"{entity.name} is declared with {entity.rule.name} placement, and {epochs.record} has epochs with "
            f"different counts ({counts}), by which its items are placed: declare "
            'Shards(..., placement="epochs") again. Only while one count holds for all keys can it be taken back'
        )

    def _settle(self, record: str, epoch: Epoch) -> None:
        self._table.settle(record, epoch.first, EpochState.VOID, now=self._clock())


def _may_lack(entity: EntityDefinition[Any], index: IndexDefinition) -> bool:
    """Whether an index may lack items, as far as its declaration says."""
    return index.backfill or bool(entity.versions.upgrades)


def _is_complete(entity: EntityDefinition[Any], index: IndexDefinition, family: Record) -> bool:
    from dynashard.topology.backfilled import is_complete  # noqa: PLC0415 - few indexes are declared with a backfill

    return is_complete(entity, index, family.backfilled)
