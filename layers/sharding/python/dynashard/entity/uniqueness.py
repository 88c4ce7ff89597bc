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
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final, Protocol

from msgspec import Struct
from orjson import dumps

from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.keys import KeyTemplate, storable_key
from dynashard.schema import MAX_PARTITION_KEY_BYTES

RESERVATION: Final = "reservation"
"""The sort key of all reservations."""
_DIGEST_BYTES: Final = 24


class Declared(Protocol):
    """What an entity's declaration says about its reservations."""

    unique: "tuple[UniqueDefinition, ...]"

    def encode_field(self, name: str, value: Any) -> dict[str, Any]:
        """Return a value as a field stores it."""
        ...


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

    def place(self, entity: Declared, values: Mapping[str, Any]) -> str | None:
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


def kinds_of(entity: Declared) -> dict[str, UniqueDefinition]:
    """Return the declarations of an entity by the `Type` of their reservations."""
    return {each.kind: each for each in entity.unique}


def reserved_for(entity: Declared, values: Mapping[str, Any]) -> dict[str, UniqueDefinition]:
    """Return what is reserved for an item with these fields, by stored partition keys; raises as `place`."""
    places = ((each.place(entity, values), each) for each in entity.unique)
    return {place: each for place, each in places if place is not None}
