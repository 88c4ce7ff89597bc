"""Compiling declarations of unique fields. Raises `WrongDeclarationError`."""

from collections.abc import Iterator, Sequence
from datetime import date
from enum import Enum
from types import NoneType
from typing import Any, Final
from uuid import UUID

from dynashard.entity.checks import checked_template, plain_types
from dynashard.entity.declaration import Unique, refuse
from dynashard.entity.definition import PARTITION_RESERVED, EntityDefinition
from dynashard.entity.uniqueness import UniqueDefinition, kind_of

_TYPES: Final = (str, int, UUID, date, Enum)


def add_unique(entity: EntityDefinition[Any], declared: Sequence[Unique]) -> None:
    """Check unique fields and add them to their entity; raises `WrongDeclarationError`."""
    for each in declared:
        refuse(_problems(entity, each))
        scope = entity.partition if each.within is None else None
        if each.within:
            scope = checked_template(
                entity.model, "what is unique within", each.within, reserved=PARTITION_RESERVED, optional=True
            )
        kind = kind_of(entity.name, each.names)
        entity.unique += (UniqueDefinition(kind, each.names, scope, each.building),)
    named = frozenset().union(*(each.named for each in entity.unique))
    entity.reserving = named | ({entity.expires} if entity.expires else set())


def _problems(entity: EntityDefinition[Any], unique: Unique) -> Iterator[str]:
    fields, shown = entity.model.model_fields, ", ".join(unique.names)
    if not entity.rule.fixed:
        placement = entity.shards.placement if entity.shards else ""
        yield f"unique {shown} needs a placement that gives each key one home, not {placement}"
    if entity.attachments:
        yield f"unique {shown} cannot be combined with attachments: keep the attachments in an entity of their own"
    if len(set(unique.names)) < len(unique.names):
        yield f"unique names a field of {shown} twice"
    if any(set(unique.names) == set(other.fields) for other in entity.unique):
        yield f"unique {shown} is declared twice"
    for name in unique.names:
        if name not in fields:
            yield f"unique names {name}, which is not a field; there are {', '.join(fields)}"
        if name in entity.server_fields or name == entity.expires:
            yield f"unique names {name}, a time that is set for each item: name a field that callers give"
        kinds = plain_types(fields[name].annotation) - {NoneType}
        if not kinds or not all(issubclass(kind, _TYPES) and kind is not bool for kind in kinds):
            yield f"unique names {name}: a unique field must be text, int, UUID, date, datetime or enum"
    scope = set(entity.partition_fields)
    if unique.within is None and set(entity.key_fields) <= scope | set(unique.names):
        yield f"unique {shown} holds for every item already, because the key consists of it: leave it out"
