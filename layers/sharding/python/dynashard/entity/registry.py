"""Which entities there are, and that no two of them can write the same key."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dynashard.entity.declaration import DEFAULT_SEPARATOR, WrongDeclarationError
from dynashard.entity.definition import EntityDefinition
from dynashard.keys import may_collide, separators

_Family = list[EntityDefinition[Any]]


class Registry(Mapping[str, EntityDefinition[Any]]):
    """Entities by name. Those that share a prefix form a family: one set of logical partitions."""

    def __init__(self) -> None:
        self._entities: dict[str, EntityDefinition[Any]] = {}
        self._families: dict[tuple[str, str], _Family] = {}

    def __getitem__(self, name: str) -> EntityDefinition[Any]:
        return self._entities[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entities)

    def __len__(self) -> int:
        return len(self._entities)

    def add(self, entity: EntityDefinition[Any]) -> None:
        """Take in an entity.

        Raises:
            WrongDeclarationError: its name is taken, or its keys could equal those of another entity.
        """
        if entity.name in self._entities:
            raise WrongDeclarationError("another entity has this name; write another, such as one with v2")
        family = self._families.setdefault((entity.prefix, entity.separator), [])
        if family and entity.separator != DEFAULT_SEPARATOR:
            raise WrongDeclarationError(f"the keys of {family[0].name} use the separator {entity.separator!r} already")
        for member in family:
            _check_partitions(entity, member)
            _check_indexes(entity, member)
        divided_by = separators([member.sort for member in (*family, entity)])
        for member in family:
            if may_collide(entity.sort, member.sort, divided_by):
                raise WrongDeclarationError(
                    f"shares its partitions with {member.name}, and the sort keys {entity.sort.text!r} and "
                    f"{member.sort.text!r} could be equal: give one a constant part of its own"
                )
        if family:
            for member in (*family, entity):
                member.reserve(divided_by)
        family.append(entity)
        self._entities[entity.name] = entity


def _check_partitions(entity: EntityDefinition[Any], member: EntityDefinition[Any]) -> None:
    if entity.partition.shape() != member.partition.shape():
        raise WrongDeclarationError(
            f"shares the prefix {entity.prefix!r} with {member.name}, whose partition is "
            f"{member.partition.text!r}: partitions of one prefix are built alike"
        )
    if entity.shards != member.shards:
        raise WrongDeclarationError(
            f"shares the prefix {entity.prefix!r} with {member.name}, which is declared with {member.shards}: "
            "entities in one logical partition have the same shards"
        )


def _check_indexes(entity: EntityDefinition[Any], member: EntityDefinition[Any]) -> None:
    """An index slot of a family has one count, kept once; only unsharded entries of another prefix stand apart."""
    theirs = {index.slot: index for index in member.indexes.values()}
    for index in entity.indexes.values():
        other = theirs.get(index.slot)
        if other is None or index.shards == other.shards:
            continue
        if index.prefix == other.prefix or (index.shards and other.shards):
            raise WrongDeclarationError(
                f"index {index.name} is declared with {index.shards}, but {other.name} of {member.name}, which shares "
                f"its partitions and {index.slot}, with {other.shards}: give both the same shards, or use another slot"
            )


REGISTRY: Final = Registry()
"""The entities of this process, filled as their classes are imported."""
