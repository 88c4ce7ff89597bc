"""The shard counts of entities: declared, in force, and changing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.key_time import TimeFormat
from dynashard.placement import UNSHARDED
from dynashard.topology import EpochState, Phase, Record, TopologyTable, family_of, index_key, partition_key


@dataclass(frozen=True, slots=True)
class Count:
    """A shard count: of an entity's logical partitions, of a single one, or of an index.

    Attributes:
        declared: the count that the entity declares; None without shards.
        initial: the count in force without a record.
        record: the topology table's record; None if it has not been written yet, or if the count never changes.
        time_format: the format of the time by which items are placed in epochs, if they are.
    """

    declared: int | None
    initial: int
    record: Record | None
    time_format: TimeFormat | None = None

    @property
    def count(self) -> int:
        """The count in force; 0 for the bare partition key."""
        return self.initial if self.record is None else self.record.count

    @property
    def history(self) -> list[tuple[int, int]]:
        """Pairs of epoch seconds and the count in force since then, oldest first."""
        if self.record is None:
            return []
        pairs = (entry.partition(":") for entry in self.record.history)
        return sorted((int(at), int(count)) for at, _, count in pairs)

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """The counts by the time of keys, oldest first; none while one count holds for all keys."""
        time_format, record = self.time_format, self.record
        return [
            {
                "first": each.first,
                "since": time_format.moment_of(each.first) if time_format is not None and each.first else None,
                "count": each.count,
                "state": each.state.value,
            }
            for each in (record.epochs if record is not None else ())
        ]

    @property
    def former(self) -> list[int]:
        """Of an index: the counts by which older entries may still stand."""
        return [] if self.record is None else sorted(self.record.former)

    @property
    def since(self) -> float | None:
        """Since when the count holds, in epoch seconds: by the clock, or for keys of later times in epochs."""
        held = [each["since"] for each in self.epochs if each["state"] == EpochState.CONFIRMED]
        return held[-1] if held else self.history[-1][0] if self.history else None

    @property
    def resize(self) -> str:
        """The resize that is under way, in words; empty without one."""
        record = self.record
        if record is None or not record.busy:
            return ""
        if record.target is None:
            return "sweep"
        phase = "requested" if record.phase is Phase.STABLE else record.phase.value
        return f"{phase}: to {shown(record.target)}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        record = self.record
        return {
            "declared": self.declared,
            "count": self.count,
            "phase": Phase.STABLE.value if record is None else record.phase.value,
            "target": None if record is None else record.target,
            "swept": record is None or record.swept,
            "since": None if record is None else record.since,
            "history": [{"at": at, "count": count} for at, count in self.history],
            "epochs": self.epochs,
            "former": self.former,
        }


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """The shard counts of an entity.

    Attributes:
        common: the count of its logical partitions without one of their own.
        marks: whether relocation markers may be stored among its items.
        partitions: logical partitions with a count of their own, by name (`abc`).
    """

    entity: EntityDefinition[Any]
    common: Count
    indexes: Mapping[str, Count]
    marks: bool
    partitions: Mapping[str, Count]

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        shards = self.entity.shards
        return {
            "entity": self.entity.name,
            "placement": shards.placement if shards else None,
            **self.common.as_dict(),
            "marks": self.marks,
            "indexes": {name: count.as_dict() for name, count in self.indexes.items()},
            "partitions": {name: count.as_dict() for name, count in self.partitions.items()},
        }


def facts(table: TopologyTable, entities: Sequence[EntityDefinition[Any]]) -> list[EntityFacts]:
    """Read the shard counts of entities.

    Cost: 1 read unit a record; where single partitions differ, a Scan of the topology table for each family.
    """
    keys = [family_of(entity) for entity in entities]
    keys += [index_key(entity, index) for entity in entities for index in entity.indexes.values()]
    records = table.read(keys)
    return [_facts(table, entity, records) for entity in entities]


def partition_count(table: TopologyTable, entity: EntityDefinition[Any], partition: str) -> tuple[Count, bool, bool]:
    """Return the count of a logical partition such as `user.v1.User:abc`. Cost: 2 read units.

    And whether that is its own count, and whether relocation markers may be stored in it.
    """
    key = partition_key(entity, partition)
    records = table.read([family_of(entity), key])
    family, own = records.get(family_of(entity)), records.get(key)
    return _count(entity, own or family), own is not None, bool(family and family.active)


def largest_count(table: TopologyTable, entity: EntityDefinition[Any], partition: str) -> int:
    """Return the largest count that a logical partition has had or is changing to. Cost: 2 read units."""
    records = table.read([family_of(entity), partition_key(entity, partition)])
    past = [int(entry.partition(":")[2]) for record in records.values() for entry in record.history]
    present = [count for record in records.values() for count in record.counts]
    declared = entity.shards.count if entity.shards else UNSHARDED
    return max(declared, *past, *present, UNSHARDED)


def shown(count: int) -> str:
    """Describe a count."""
    return "unsharded" if count == UNSHARDED else str(count)


def _facts(table: TopologyTable, entity: EntityDefinition[Any], records: Mapping[str, Record]) -> EntityFacts:
    family = records.get(family_of(entity))
    indexes = {}
    for index in entity.indexes.values():
        declared = index.shards.count if index.shards else None
        record = records.get(index_key(entity, index)) if index.shards else None
        indexes[index.name] = Count(declared, index.shards.initial if index.shards else UNSHARDED, record)
    return EntityFacts(
        entity=entity,
        common=_count(entity, family if entity.shards else None),
        indexes=indexes,
        marks=bool(family and family.active),
        partitions=_partitions(table, entity) if family and family.differ_since is not None else {},
    )


def _partitions(table: TopologyTable, entity: EntityDefinition[Any]) -> dict[str, Count]:
    prefix = f"{family_of(entity)}:"
    own = (record for record in table.own(family_of(entity)) if record.key.startswith(prefix))
    return {record.key.removeprefix(prefix): _count(entity, record) for record in sorted(own, key=lambda r: r.key)}


def _count(entity: EntityDefinition[Any], record: Record | None) -> Count:
    shards = entity.shards
    initial = shards.initial if shards else UNSHARDED
    return Count(shards.count if shards else None, initial, record, entity.time)
