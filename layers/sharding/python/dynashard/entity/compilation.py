"""Compiling a declaration: its parts are checked, alone and against each other."""

from typing import Any, TypeVar

from dynashard.entity.checks import NAME, check_attachments, check_fields, check_names, check_template
from dynashard.entity.declaration import DEFAULT_SEPARATOR, Index, Key, Shards, WrongDeclarationError
from dynashard.entity.definition import PARTITION_RESERVED, EntityDefinition, IndexDefinition
from dynashard.entity.mistakes import check_nested
from dynashard.entity.record import Record
from dynashard.schema import INDEX_SLOTS

T = TypeVar("T", bound=Record)


def compile_entity(
    model: type[T], *, name: str, key: Key, shards: Shards | None, indexes: tuple[Index, ...], expires: str | None
) -> EntityDefinition[T]:
    """Check a declaration and compile it.

    Raises:
        WrongDeclarationError: with the reason.
    """
    if shards is not None:
        shards.check()
    check_names(name, key, shards)
    check_fields(model, expires)
    nested = check_nested(model.__pydantic_core_schema__, model)
    if shards is not None and key.sort is None:
        raise WrongDeclarationError(
            "is sharded but its key has no sort part: nothing would spread its items; write "
            'sort="{id}" in the key, or leave shards out'
        )
    definition = EntityDefinition(model, name, key, shards, expires)
    if nested:
        definition.ignore_unknown_in_models()
    if shards is not None and not definition.sort.fields:
        raise WrongDeclarationError("is sharded but its sort key is constant: nothing would spread its items")
    for stamp in definition.server_fields.intersection(definition.key_fields):
        raise WrongDeclarationError(f"{stamp} is stamped at writes, so it cannot be part of the key")
    for index in indexes:
        _add_index(definition, index)
    _add_replicas(definition, key)
    if definition.attachments:
        in_keys = {*definition.key_fields, *(n for index in definition.indexes.values() for n in index.fields)}
        check_attachments(model, definition.attachments, taken={*in_keys, expires}, shards=shards)
    return definition


def _add_replicas(definition: EntityDefinition[Any], key: Key) -> None:
    """Give the item's own key to indexes that reading is balanced over."""
    if definition.shards is None:
        return
    taken = {index.slot: index.name for index in definition.indexes.values()}
    for number, slot in enumerate(INDEX_SLOTS[::-1][: definition.shards.read_replicas], 1):
        if slot in taken:
            raise WrongDeclarationError(
                f"uses {slot} for {taken[slot]} and for a read replica: give the index another slot, or have fewer "
                "replicas"
            )
        copy = Index(
            slot,
            f"replica_{number}",
            key.partition,
            key.sort or "",
            shards=definition.shards.of_replica,
            unpadded=key.unpadded,
        )
        _add_index(definition, copy, replica=True)


def _add_index(definition: EntityDefinition[Any], index: Index, *, replica: bool = False) -> None:
    index.check()
    if index.name in definition.indexes:
        raise WrongDeclarationError(f"has two indexes named {index.name}; write another name for one of them")
    for other in definition.indexes.values():
        if other.slot == index.slot:
            raise WrongDeclarationError(
                f"uses {index.slot} twice: for {other.name} and for {index.name}; write another slot for one of "
                f"them, of {', '.join(INDEX_SLOTS)}"
            )
    prefix = index.prefix if index.prefix is not None else definition.prefix or definition.name
    if not NAME.fullmatch(prefix):
        raise WrongDeclarationError(f"index {index.name}: prefix {prefix!r} may hold letters, digits and ._/#-")
    definition.indexes[index.name] = IndexDefinition(
        name=index.name,
        slot=index.slot,
        partition=check_template(
            definition.model, f"{index.name} partition", index.partition, reserved=PARTITION_RESERVED, optional=True
        ),
        sort=check_template(
            definition.model, f"{index.name} sort", index.sort, optional=True, ordered=True, unpadded=index.unpadded
        ),
        shards=index.shards,
        by_item_key=index.shard_by == "item_key",
        prefix=prefix,
        separator=DEFAULT_SEPARATOR,
        replica=replica,
    )
