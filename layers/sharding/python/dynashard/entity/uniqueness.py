"""Unique fields, compiled: what is reserved for an item, so that no other live item can have the same values.

A *reservation* is a small item that holds a value for its owner. It has a stored partition of its own, in the same
table, unsharded and in no index:

    PK  user.v1.User~unique~email:abc:Yp0…   the entity and the fields, what they are unique within, the values' digest
    SK  reservation

The digest gives values of any length and with any character a key of one form, and keeps addresses and names out of
keys, which metrics and logs may show. The owner is named by its logical key, so a reservation does not change while the
owner's shard count does.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from types import NoneType
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from orjson import dumps

from dynashard.entity.checks import checked_template, plain_types
from dynashard.entity.declaration import DEFAULT_SEPARATOR, Unique, refuse
from dynashard.entity.definition import PARTITION_RESERVED, EntityDefinition
from dynashard.keys import KeyTemplate, storable_key
from dynashard.schema import MAX_PARTITION_KEY_BYTES

RESERVATION: Final = "reservation"
"""The sort key of all reservations."""
_TYPES: Final = (str, int, UUID, date, Enum)
_DIGEST_BYTES: Final = 24


class UniqueDefinition(Struct, frozen=True, dict=True):
    """A compiled `Unique`.

    Attributes:
        kind: the beginning of its stored partition keys, and the `Type` of its reservations. It belongs to no entity
            and no attachment, because names of neither have two `~`.
        fields: the fields whose values are unique together.
        scope: what they are unique within; None for the whole table.
        building: items may be stored that have no reservation yet.
    """

    kind: str
    fields: tuple[str, ...]
    scope: KeyTemplate | None
    building: bool = False

    @cached_property
    def scope_fields(self) -> tuple[str, ...]:
        """The fields of what the values are unique within."""
        return () if self.scope is None else self.scope.fields

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The fields by which an item is looked up, in the order in which people type them."""
        return tuple(dict.fromkeys(self.scope_fields + self.fields))

    @cached_property
    def named(self) -> frozenset[str]:
        """The fields by which an item is looked up."""
        return frozenset(self.fields + self.scope_fields)

    def place(self, entity: EntityDefinition[Any], values: Mapping[str, Any]) -> str | None:
        """Return the stored partition key that is reserved for these values; None if one is not set.

        Raises:
            InvalidKeyError: a field of `within` cannot be part of a key.
            InvalidValueError: DynamoDB cannot store a value exactly.
        """
        for name in self.named:
            if values.get(name) is None:
                return None
        stored = dumps([entity.encode_field(name, values[name]) for name in self.fields])
        digest = urlsafe_b64encode(blake2b(stored, digest_size=_DIGEST_BYTES).digest()).decode()
        within = "" if self.scope is None else self.scope.render(values)
        place = DEFAULT_SEPARATOR.join((self.kind, within, digest))
        return storable_key(place, f"what {', '.join(self.fields)} is unique within", MAX_PARTITION_KEY_BYTES)


def kind_of(entity: str, fields: Sequence[str]) -> str:
    """Return the beginning of the stored partition keys of an entity's reservations for some fields."""
    return f"{entity}~unique~{'+'.join(fields)}"


def kinds_of(entity: EntityDefinition[Any]) -> dict[str, UniqueDefinition]:
    """Return the declarations of an entity by the `Type` of their reservations."""
    return {each.kind: each for each in entity.unique}


def reserved_for(entity: EntityDefinition[Any], values: Mapping[str, Any]) -> dict[str, UniqueDefinition]:
    """Return what is reserved for an item with these fields, by stored partition keys; raises as `place`."""
    places = ((each.place(entity, values), each) for each in entity.unique)
    return {place: each for place, each in places if place is not None}


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
