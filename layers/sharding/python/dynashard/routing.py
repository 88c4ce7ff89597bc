"""Where a key's item lives under a view: from logical keys to stored ones."""

from collections.abc import Mapping
from typing import Any

from dynashard.entity import EntityDefinition, IndexDefinition, ItemKey
from dynashard.placement import CALCULATED, UNSHARDED, Placement
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.topology import Topology, View


class Router:
    """Turns logical keys into stored keys, asking the topology for the count in force."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """The view under which one operation on a logical partition runs."""
        return self._topology.view(entity, partition)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """The view under which one listing of an index runs."""
        return self._topology.index_view(entity, index)

    def stored_key(self, entity: EntityDefinition[Any], key: ItemKey) -> dict[str, dict[str, str]]:
        """The stored key of an item at its home, in DynamoDB JSON."""
        view = self._topology.view(entity, key.partition)
        return {PK: {"S": home(entity, key, view.count)}, SK: {"S": key.sort}}

    def index_attributes(
        self, entity: EntityDefinition[Any], index: IndexDefinition, key: ItemKey, values: Mapping[str, Any]
    ) -> dict[str, dict[str, str]]:
        """The attributes that put an item into an index; empty if a field of the index key is not set.

        Raises:
            InvalidKeyError: a field cannot stand in a key.
        """
        entry = index.entry(values)
        if entry is None:
            return {}
        count = self._topology.index_view(entity, index).count
        return {
            index_pk(index.slot): {"S": index_home(index, entry, key, count)},
            index_sk(index.slot): {"S": entry.sort},
        }


def rule_of(entity: EntityDefinition[Any]) -> Placement:
    """The placement of an entity; that of unsharded ones is the one they would be adopted under."""
    return entity.shards.rule if entity.shards else CALCULATED


def hash_of(rule: Placement, key: ItemKey) -> int:
    """The hash that decides a key's shard under any count."""
    return rule.hash(f"{key.partition}{rule.joiner}{key.sort}")


def home(entity: EntityDefinition[Any], key: ItemKey, count: int) -> str:
    """The stored partition key where an item belongs under a shard count."""
    if count == UNSHARDED:
        return key.partition
    rule = rule_of(entity)
    return f"{key.partition}{entity.separator}{rule.shard(hash_of(rule, key), count) + rule.first}"


def index_home(index: IndexDefinition, entry: ItemKey, key: ItemKey, count: int) -> str:
    """The stored index partition key of an entry under the index's shard count.

    Args:
        index: the index.
        entry: the item's key in the index.
        key: the item's own key, whose hash spreads entries unless the index says otherwise.
        count: the index's shard count.
    """
    if count == UNSHARDED:
        return entry.partition
    shard = CALCULATED.shard(hash_of(CALCULATED, key if index.by_item_key else entry), count)
    return f"{entry.partition}{index.separator}{shard}"


def logical_partition_of(entity: EntityDefinition[Any], stored: str) -> str:
    """The logical partition that a stored partition key belongs to."""
    return stored.rpartition(entity.separator)[0] if entity.shards else stored


def shard_keys(rule: Placement, partition: str, separator: str, count: int) -> list[str]:
    """The stored partition keys of a logical partition under a count, shard 0 first."""
    if count == UNSHARDED:
        return [partition]
    return [f"{partition}{separator}{number + rule.first}" for number in range(count)]
