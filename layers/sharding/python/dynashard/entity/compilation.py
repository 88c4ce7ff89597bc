"""Compiling a declaration: its parts are checked, alone and against each other. Raises `WrongDeclarationError`."""

from collections.abc import Iterator
from typing import Any, TypeVar

from dynashard.entity.checks import (
    NAME,
    attachment_problems,
    checked_template,
    default_problems,
    expiry_problems,
    field_problems,
    name_problems,
    unknown_field_problems,
)
from dynashard.entity.declaration import Index, Key, Shards, WrongDeclarationError, refuse
from dynashard.entity.definition import PARTITION_RESERVED, EntityDefinition
from dynashard.entity.item_keys import IndexDefinition
from dynashard.entity.mistakes import check_nested
from dynashard.entity.versions import version_problems, versions_of
from dynashard.record import Record
from dynashard.schema import INDEX_SLOTS

T = TypeVar("T", bound=Record)


def compile_entity(
    model: type[T],
    *,
    name: str,
    key: Key,
    shards: Shards | None,
    indexes: tuple[Index, ...],
    expires: str | None,
    version: object = None,
    upgrade: object = None,
) -> EntityDefinition[T]:
    """Check a declaration and compile it."""
    if not model.__pydantic_complete__:
        raise WrongDeclarationError("a field is of a type that is not defined yet: define it above the entity")
    if shards is not None:
        refuse(shards.problems())
    refuse(name_problems(name, key, shards))
    refuse(field_problems(model))
    refuse(default_problems(model))
    refuse(unknown_field_problems(model))
    refuse(version_problems(version, upgrade))
    refuse(expiry_problems(model, expires))
    kinds = check_nested(model.__pydantic_core_schema__, model)
    if shards is not None and key.sort is None:
        raise WrongDeclarationError(
            "is sharded but its key has no sort part: nothing would spread its items; write "
            'sort="{id}" in the key, or leave shards out'
        )
    versions = versions_of(version, upgrade)
    definition = EntityDefinition(model, name, key, shards, expires, object_kinds=kinds, versions=versions)
    if shards is not None and not definition.sort.fields:
        raise WrongDeclarationError("is sharded but its sort key is constant: nothing would spread its items")
    for stamp in definition.server_fields.intersection(definition.key_fields):
        raise WrongDeclarationError(f"{stamp} is stamped at writes, so it cannot be part of the key")
    for index in indexes:
        _add_index(definition, index)
    if shards is not None:
        _add_replicas(definition, key, shards)
    taken = {*definition.key_fields, *(n for index in definition.indexes.values() for n in index.fields), expires}
    refuse(attachment_problems(model, definition.attachments, taken=taken, shards=shards))
    return definition


def _add_replicas(definition: EntityDefinition[Any], key: Key, shards: Shards) -> None:
    """Add read replicas: indexes on the item's own key, with as many shards or the next power of two."""
    spread = Shards(1 << (shards.count - 1).bit_length(), max=shards.max)
    for number, slot in enumerate(INDEX_SLOTS[::-1][: shards.read_replicas], 1):
        copy = Index(slot, f"replica_{number}", key.partition, key.sort or "", spread, unpadded=key.unpadded)
        _add_index(definition, copy, replica=True)


def _index_problems(definition: EntityDefinition[Any], index: Index, prefix: str) -> Iterator[str]:
    yield from index.problems()
    if index.name in definition.indexes:
        yield f"has two indexes named {index.name}; write another name for one of them"
    for other in definition.indexes.values():
        if other.slot == index.slot:
            slots = ", ".join(INDEX_SLOTS)
            yield f"uses {index.slot} twice: for {other.name} and for {index.name}; write another of {slots} for one"
    if not NAME.fullmatch(prefix):
        yield f"index {index.name}: prefix is {prefix!r}; it must consist of letters, digits and ._/#-"


def _add_index(definition: EntityDefinition[Any], index: Index, *, replica: bool = False) -> None:
    prefix = index.prefix if index.prefix is not None else definition.prefix or definition.name
    refuse(_index_problems(definition, index, prefix))
    model, partition = definition.model, f"{index.name} partition"
    definition.indexes[index.name] = IndexDefinition(
        name=index.name,
        slot=index.slot,
        partition=checked_template(model, partition, index.partition, reserved=PARTITION_RESERVED, optional=True),
        sort=checked_template(model, f"{index.name} sort", index.sort, optional=True, unpadded=index.unpadded),
        shards=index.shards,
        by_item_key=index.shard_by == "item_key",
        prefix=prefix,
        replica=replica,
        backfill=index.backfill,
    )
