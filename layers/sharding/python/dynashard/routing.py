"""From logical keys to stored ones: the shard of an item under a view, a leased snapshot of the shard map."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dynashard.entity import EntityDefinition, IndexDefinition, ItemKey
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.key_clock import KeyClock
from dynashard.placement import CALCULATED, UNSHARDED, Placement
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.topology import Epochs, Phase, Topology, View
from dynashard.transport.interface import Wire

StoredKey = tuple[str, str]
"""A stored partition key and a sort key."""


def wire_key(key: StoredKey) -> Wire:
    """Return a stored key in DynamoDB JSON."""
    return {PK: {"S": key[0]}, SK: {"S": key[1]}}


def stored_key(item: Mapping[str, Any]) -> StoredKey:
    """Return the stored key of an item or key in DynamoDB JSON."""
    return item[PK]["S"], item[SK]["S"]


class Places(Struct, frozen=True):
    """The stored partition keys of an item under a view: `old` by the present count, `new` by the target of a resize.

    They are equal if no resize moves the key. `shards` is the present count, or that of the key's epoch.
    """

    view: View
    old: str
    new: str
    shards: int

    @property
    def moving(self) -> bool:
        """Whether the key's item has another home after the resize that is under way."""
        return self.old != self.new


def settling(places: Places) -> bool:
    """Whether a live item of the key may still be at its old home."""
    return places.moving and places.view.phase is Phase.SETTLE


class Router:
    """Turns logical keys into stored keys, by the shard counts of a topology, and by the time of keys in epochs.

    `key_clock` judges which keys may be written and read now; None is one that trusts the system's clock.
    """

    def __init__(self, topology: Topology, key_clock: KeyClock | None = None) -> None:
        self.topology = topology
        self.key_clock = key_clock or KeyClock()

    def places(self, entity: EntityDefinition[Any], key: ItemKey, view: View | None = None) -> Places:
        """Return the places of an item now, or under a view; of an entity whose placement gives each key one home.

        Cost: that of a view. If an epoch that is not settled decides about the key, that of settling it.
        """
        view = view or self.topology.view(entity, key.partition)
        count = view.count
        if view.epochs is not None:
            settled = view.epochs.settled_count_of(key.sort)
            if settled is None:
                view, count = self._by_time(entity, key, view, view.epochs)
            else:
                count = settled
        old = home(entity, key, count)
        return Places(view, old, old if view.target is None else home(entity, key, view.target), count)

    def places_to_write(self, entity: EntityDefinition[Any], key: ItemKey, view: View | None = None) -> Places:
        """Return the places of an item to write now; raises as `KeyClock.require_writable`. Cost: that of `places`."""
        if entity.time is not None:
            # Before the key is judged, because the answer with a new view may show that the clock was set.
            view = view or self.topology.view(entity, key.partition)
            if self.require_writable(entity, key):
                # Its requests may have lasted longer than the view may be used.
                view = self.topology.view(entity, key.partition)
        return self.places(entity, key, view)

    def places_to_read(self, entity: EntityDefinition[Any], key: ItemKey) -> Places | None:
        """Return the places of an item to read now; None if it cannot exist (`may_exist`). Costs what `places` does."""
        view = self.topology.view(entity, key.partition)
        # Most keys are older than the view, which is compared here because a call would cost more than the rest.
        if view.epochs is not None and key.sort >= view.epochs.past and not self.may_exist(entity, key, view):
            return None
        return self.places(entity, key, view)

    def require_writable(self, entity: EntityDefinition[Any], key: ItemKey) -> bool:
        """Refuse a key that may not be written now; returns and raises as `KeyClock.require_writable`.

        Cost: that of a view, whose answer has a date, if nothing is known about this process's clock, if it may have
        been set, and about once a second while it may be off.
        """
        return entity.time is not None and self.key_clock.require_writable(entity, key, self._learn_clock)

    def _learn_clock(self, entity: EntityDefinition[Any], key: ItemKey) -> None:
        if self.key_clock.offset.date:
            # Else the view that the write needs is read anyway, and shows the first.
            self.topology.refresh(entity, key.partition)
        self.topology.view(entity, key.partition)

    def may_exist(self, entity: EntityDefinition[Any], key: ItemKey, view: View) -> bool:
        """Whether an item can have been written under this key by now: not if its time is too far in the future.

        The place of such a key is not known yet. It matters, and is looked at, only where there are epochs. Raises as
        `KeyClock.readable`.
        """
        return view.epochs is None or self.key_clock.readable(entity, key, self._learn_clock)

    def reads_at(self, entity: EntityDefinition[Any], stored: str, sort: str) -> bool:
        """Whether readers look for a sort key at a stored partition key now. Cost: that of `places`."""
        partition = logical_partition_of(entity, stored)
        if not entity.rule.fixed:
            return stored in stored_partitions(entity, partition, self.topology.view(entity, partition))
        places = self.places(entity, ItemKey(partition, sort))
        return stored in (places.old, places.new)

    def stored_key(self, entity: EntityDefinition[Any], key: ItemKey) -> dict[str, dict[str, str]]:
        """Return the stored key of an item at its home, in DynamoDB JSON."""
        return wire_key((self.places(entity, key).old, key.sort))

    def _by_time(self, entity: EntityDefinition[Any], key: ItemKey, view: View, epochs: Epochs) -> tuple[View, int]:
        """Settle the epoch in which a key lies; return its count and the view that says so."""
        while (entry := epochs.unsettled(key.sort)) is not None:
            # It may still be confirmed or not: the first request decides. Then all clients place the key alike.
            epochs.settle(entry)
            self.topology.refresh(entity, key.partition)
            view = self.topology.view(entity, key.partition)
            if view.epochs is None:
                return view, view.count
            epochs = view.epochs
        return view, epochs.count_of(key.sort)

    def index_attributes(
        self, entity: EntityDefinition[Any], index: IndexDefinition, key: ItemKey, values: Mapping[str, Any]
    ) -> dict[str, dict[str, str]]:
        """Return the attributes that put an item into an index: none if a field of the index key is not set."""
        entry = entity.entry(index, values)
        if entry is None:
            return {}
        return {
            index_pk(index.slot): {"S": index_home(index, entry, key, self.index_count(entity, index))},
            index_sk(index.slot): {"S": entry.sort},
        }

    def index_homes(
        self, entity: EntityDefinition[Any], index: IndexDefinition, key: ItemKey, values: Mapping[str, Any]
    ) -> frozenset[str]:
        """Return the stored partition keys under which an item's entry may stand in an index; none if it has none."""
        entry, view = entity.entry(index, values), self.topology.index_view(entity, index)
        if entry is None:
            return frozenset()
        counts = (self.index_count(entity, index), *view.former)
        return frozenset(index_home(index, entry, key, count) for count in counts)

    def index_count(self, entity: EntityDefinition[Any], index: IndexDefinition) -> int:
        """Return the shard count by which entries of an index are written now."""
        view = self.topology.index_view(entity, index)
        return view.count if view.target is None or view.phase is Phase.PREPARE else view.target


class IndexCounts(dict[str, int]):
    """What `Router.index_count` returns, by the names of an entity's indexes, asked once for each that is needed."""

    def __init__(self, router: Router, entity: EntityDefinition[Any]) -> None:
        super().__init__()
        self.router, self._entity = router, entity

    def __missing__(self, name: str) -> int:
        return self.setdefault(name, self.router.index_count(self._entity, self._entity.indexes[name]))


def hash_of(rule: Placement, key: ItemKey) -> int:
    """Return the hash that decides a key's shard under any count."""
    return rule.hash(f"{key.partition}{rule.joiner}{key.sort}")


def home(entity: EntityDefinition[Any], key: ItemKey, count: int) -> str:
    """Return the stored partition key of an item under a shard count."""
    if count == UNSHARDED:
        return key.partition
    rule = entity.rule
    return f"{key.partition}{entity.separator}{rule.shard(hash_of(rule, key), count) + rule.first}"


def index_hash(index: IndexDefinition, entry: ItemKey, key: ItemKey) -> int:
    """Return the hash that decides an index entry's shard under any count.

    It is that of the item's own `key`, so that entries with equal index keys spread, unless the index says otherwise.
    """
    return hash_of(CALCULATED, key if index.by_item_key else entry)


def index_home(index: IndexDefinition, entry: ItemKey, key: ItemKey, count: int) -> str:
    """Return the stored partition key of an index entry under the index's shard count; `key` is the item's own key."""
    if count == UNSHARDED:
        return entry.partition
    return f"{entry.partition}{index.separator}{CALCULATED.shard(index_hash(index, entry, key), count)}"


def logical_partition_of(entity: EntityDefinition[Any], stored: str) -> str:
    """Return the logical partition of a stored partition key, with or without a shard's suffix."""
    if not entity.shards:
        return stored
    if entity.separator == DEFAULT_SEPARATOR:
        # No value in a partition holds the separator, so a shard's key has exactly one more of it.
        divisions = (entity.prefix + entity.separator + entity.partition.literals()).count(entity.separator)
        if stored.count(entity.separator) == divisions:
            return stored
    return stored.rpartition(entity.separator)[0]


def shard_key(rule: Placement, partition: str, separator: str, count: int, number: int) -> str:
    """Return the stored partition key of the shard with this number, from 0, of a logical partition under a count."""
    return partition if count == UNSHARDED else f"{partition}{separator}{number + rule.first}"


def stored_partitions(entity: EntityDefinition[Any], partition: str, view: View) -> list[str]:
    """Return all stored partition keys of a logical partition under a view: of every count that it knows of."""
    counts = [view.count, view.new_count]
    if view.epochs is not None:
        counts = [UNSHARDED] * view.epochs.bare + [view.epochs.most]
    keys = [shard_keys(entity.rule, partition, entity.separator, count) for count in counts]
    return list(dict.fromkeys(key for each in keys for key in each))


def shard_keys(rule: Placement, partition: str, separator: str, count: int) -> list[str]:
    """Return the stored partition keys of a logical partition under a count, shard 0 first."""
    return [shard_key(rule, partition, separator, count, number) for number in range(count or 1)]
