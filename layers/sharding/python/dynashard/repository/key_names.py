"""How messages and errors name an item: by its entity and the fields of its key."""

from collections.abc import Mapping
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.errors import NotFoundError
from dynashard.keys import key_text
from dynashard.repository.store import KeyLike


def key_fields(key: KeyLike) -> Mapping[str, Any]:
    """Return the fields of a key, or of an item."""
    return key if isinstance(key, Mapping) else key.__dict__


def key_named(entity: EntityDefinition[Any], key: KeyLike) -> dict[str, str | int]:
    """Return the fields of a key as errors list them."""
    fields = key_fields(key)
    named = {name: fields[name] for name in entity.key_fields}
    return {name: each if type(each) in (str, int) else key_text(name, each) for name, each in named.items()}


def name_of(entity: EntityDefinition[Any], key: KeyLike) -> str:
    """Return the name of an item in messages: `user.v1.User tenant_id='abc', id='ada'`."""
    fields = key_fields(key)
    return f"{entity.name} " + ", ".join(f"{n}={fields[n]!r}" for n in entity.key_fields if n in fields)


def not_found(entity: EntityDefinition[Any], key: KeyLike) -> NotFoundError:
    """Return the error for a key that has no live item."""
    return NotFoundError(f"{name_of(entity, key)} does not exist")
