"""The declared entities, and the check that no two of them can write the same key."""

from collections.abc import Iterator
from typing import Any, Final

from dynashard.entity.declaration import DEFAULT_SEPARATOR, refuse
from dynashard.entity.definition import EntityDefinition
from dynashard.keys import may_collide, separators


class Registry(dict[str, EntityDefinition[Any]]):
    """Entities by name. Those that share a prefix form a family: one set of logical partitions."""

    def __init__(self) -> None:
        super().__init__()
        self._families: dict[tuple[str, str], list[EntityDefinition[Any]]] = {}

    def add(self, entity: EntityDefinition[Any]) -> None:
        """Add an entity; raises `WrongDeclarationError` if its name is taken or its keys could equal another's."""
        family = self._families.setdefault((entity.prefix, entity.separator), [])
        divided_by = separators([member.sort for member in (*family, entity)])
        refuse(self._problems(entity, family, divided_by))
        if family:
            for member in (*family, entity):
                member.reserve_characters(divided_by)
        family.append(entity)
        self[entity.name] = entity

    def _problems(
        self, entity: EntityDefinition[Any], family: list[EntityDefinition[Any]], divided_by: frozenset[str]
    ) -> Iterator[str]:
        if entity.name in self:
            yield "another entity has this name; write another, such as one with v2"
        if family and entity.separator != DEFAULT_SEPARATOR:
            yield (
                f"the keys of {family[0].name} use the separator {entity.separator!r} already; if this entity is "
                "stored in another table, give it a registry of its own: registry=Registry()"
            )
        for member in family:
            if entity.partition.shape() != member.partition.shape():
                yield (
                    f"shares the prefix {entity.prefix!r} with {member.name}, whose partition is "
                    f"{member.partition.text!r}: entities with one prefix need partition templates of one shape"
                )
            if entity.shards != member.shards:
                yield (
                    f"shares the prefix {entity.prefix!r} with {member.name}, which is declared with {member.shards}: "
                    "entities in one logical partition have the same shards"
                )
            if entity.time != member.time:
                yield (
                    f"shares the prefix {entity.prefix!r} with {member.name}, whose sort keys begin with another form "
                    "of time: entities in one logical partition need the same, because an epoch begins at one sort key"
                )
            yield from _index_problems(entity, member)
        for member in family:
            if may_collide(entity.sort, member.sort, divided_by):
                yield (
                    f"shares its partitions with {member.name}, and the sort keys {entity.sort.text!r} and "
                    f"{member.sort.text!r} could be equal: give one a constant part that the other does not have"
                )


def _index_problems(entity: EntityDefinition[Any], member: EntityDefinition[Any]) -> Iterator[str]:
    """Check that the slots of a family have one count each; only unsharded entries of another prefix are apart."""
    theirs = {index.slot: index for index in member.indexes.values()}
    for index in entity.indexes.values():
        other = theirs.get(index.slot)
        if other is None or index.shards == other.shards:
            continue
        if index.prefix == other.prefix or (index.shards and other.shards):
            yield (
                f"index {index.name} is declared with {index.shards}, but {other.name} of {member.name}, which shares "
                f"its partitions and {index.slot}, with {other.shards}: give both the same shards, or use another slot"
            )


REGISTRY: Final = Registry()
"""The entities of this process, filled as their classes are imported."""
