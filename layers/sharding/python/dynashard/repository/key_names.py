"""How messages and errors name an item: by its entity and the fields of its key."""

from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any
from uuid import UUID

from dynashard.entity import EntityDefinition
from dynashard.errors import NotFoundError
from dynashard.keys import key_text
from dynashard.repository.store import KeyLike


def key_fields(key: KeyLike) -> Mapping[str, Any]:
    """Return the fields of a key, or of an item."""
    # The most frequent one first, because to ask whether it is a mapping takes long.
    return key if key.__class__ is dict or isinstance(key, Mapping) else key.__dict__


def key_named(entity: EntityDefinition[Any], key: KeyLike) -> dict[str, str | int]:
    """Return the fields of a key as errors list them."""
    fields = key_fields(key)
    named = {name: fields[name] for name in entity.key_fields}
    return {name: each if type(each) in (str, int) else key_text(name, each) for name, each in named.items()}


def name_of(entity: EntityDefinition[Any], key: KeyLike) -> str:
    """Return the name of an item in messages: `user.v1.User tenant_id='abc', id='ada'`."""
    fields = key_fields(key)
    return f"{entity.name} " + ", ".join(f"{n}={_shown(fields[n])}" for n in entity.key_fields if n in fields)


def _shown(value: Any) -> str:
    """Return a value as callers write it, not as Python does: they may use another language."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, date):
        value = value.isoformat().replace("+00:00", "Z")
    return repr(str(value) if isinstance(value, UUID) else value)


def not_found(entity: EntityDefinition[Any], key: KeyLike) -> NotFoundError:
    """Return the error for a key that has no live item."""
    return NotFoundError(f"{name_of(entity, key)} does not exist")
