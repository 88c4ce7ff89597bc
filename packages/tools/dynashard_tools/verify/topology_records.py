"""Reads shard counts in force from the topology table itself, without a lease."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.placement import UNSHARDED
from dynashard.resharding.checks import under_way
from dynashard.resharding.scope import Family
from dynashard.routing import shard_keys
from dynashard.schema import TYPE
from dynashard.topology import Record, TopologyTable, family_of, index_key, partition_key
from dynashard.transport.interface import Wire
from dynashard_tools.verify.topology import Damage, damage_of


class TopologyRecords:
    """The topology records of the families of some entities, which say the shard counts in force.

    `pauses` starts the backoff for a page of the table that is throttled.
    """

    def __init__(
        self,
        table: TopologyTable,
        entities: Sequence[EntityDefinition[Any]],
        pauses: Callable[[], Iterator[float]],
    ) -> None:
        self._table = table
        self._pauses = pauses
        self._by_name = {entity.name: entity for entity in entities}
        groups: dict[str, list[EntityDefinition[Any]]] = {}
        for entity in entities:
            groups.setdefault(family_of(entity), []).append(entity)
        self._families = {name: Family(members) for name, members in groups.items()}
        self._records: dict[str, dict[str, Record]] = {}
        self._damage: Damage | None = None

    def damage(self) -> Damage:
        """Return what is wrong with the records. Cost: that of `damage_of`, once."""
        if self._damage is None:
            powers = {name: family.members[0].rule.powers_of_two for name, family in self._families.items()}
            self._damage = damage_of(self._table.transport, self._table.table, powers, self._pauses)
        return self._damage

    def damaged(self, entity: EntityDefinition[Any]) -> bool:
        """Whether a record of an entity's family is damaged, so that no count of it can be relied on."""
        return family_of(entity) in self.damage().families

    def family_of(self, item: Wire) -> Family | None:
        """Return the family in whose partitions a stored item or marker stands; None for a row of another program.

        Its partition key must have the form of one of the family's. Without a prefix, which says whose a key is, it
        must also have the type of a member, unless the family is declared to adopt items.
        """
        for family in self._families.values():
            if family.has(item) and (family.members[0].prefix or family.adopts or TYPE in item):
                return family
        return None

    def record(self, entity: EntityDefinition[Any], partition: str, *, fresh: bool = False) -> Record | None:
        """Return the record in force for a logical partition; None if it has not been written yet.

        Cost: none; a Scan of the topology table for the first item of a family; if `fresh`, 2 read units.
        """
        family, key = family_of(entity), partition_key(entity, partition)
        if fresh:
            known = self._table.read([key, family])
        else:
            if family not in self._records:
                self._records[family] = self._all(family)
            known = self._records[family]
        return known.get(key) or known.get(family)

    def changing(self, entity: EntityDefinition[Any], partition: str, *, fresh: bool = False) -> str | None:
        """Return the key of the record whose resize concerns a partition; None without a resize."""
        record = self.record(entity, partition, fresh=fresh)
        return record.key if record is not None and under_way(record) else None

    def index_changing(self, entity: EntityDefinition[Any]) -> bool:
        """Whether an index of the entity is changing. Cost: 1 read unit an index."""
        keys = [index_key(entity, index) for index in entity.indexes.values() if index.shards]
        return bool(keys) and any(under_way(record) for record in self._table.read(keys).values())

    def count(self, entity: EntityDefinition[Any], partition: str, sort: str, *, fresh: bool = False) -> int:
        """Return the shard count that places a sort key in a logical partition now."""
        if entity.shards is None:
            return UNSHARDED
        record = self.record(entity, partition, fresh=fresh)
        return entity.shards.initial if record is None else record.count_of(sort)

    def places(self, entity: EntityDefinition[Any], partition: str) -> list[str]:
        """Return all stored partition keys under which items of a partition may be stored, also by mistake."""
        family, key = family_of(entity), partition_key(entity, partition)
        records = self._table.read([key, family])
        counts = {UNSHARDED, entity.shards.initial if entity.shards else UNSHARDED}
        for record in records.values():
            counts |= {int(entry.partition(":")[2]) for entry in record.history} | record.counts
        rule, separator = entity.rule, entity.separator
        keys = (key for count in sorted(counts) for key in shard_keys(rule, partition, separator, count))
        return list(dict.fromkeys(keys))

    def _all(self, family: str) -> dict[str, Record]:
        records = self._table.read([family])
        if family in records and records[family].differ_since is not None:
            records |= {record.key: record for record in self._table.own(family)}
        return records
