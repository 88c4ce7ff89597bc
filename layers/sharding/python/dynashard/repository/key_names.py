"""How messages name an item, by its entity and the fields of its key, and what a caller gave in place of one."""

from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from typing import Any
from uuid import UUID

from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError, NotFoundError
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
    return f"{entity.name} " + ", ".join(f"{n}={_written(fields[n])}" for n in entity.key_fields if n in fields)


def _written(value: Any) -> str:
    """Return a value as callers write it, not as Python does: they may use another language."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, date):
        value = value.isoformat().replace("+00:00", "Z")
    return repr(str(value) if isinstance(value, UUID) else value)


def not_found(entity: EntityDefinition[Any], key: KeyLike) -> NotFoundError:
    """Return the error for a key that has no live item."""
    return NotFoundError(f"{name_of(entity, key)} does not exist")


def shown(value: object) -> str:
    """Return a value as messages show it: what is long or secret only by its class."""
    return repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def check_revision(if_match: object, name: str = "if_match") -> None:
    """Refuse a revision that is not a text, such as the item itself, with `InvalidValueError`."""
    if if_match is not None and not isinstance(if_match, str):
        raise InvalidValueError(f"{name} is {shown(if_match)}; write {name}=item.revision", field=name)


def names_of(what: str, names: Any) -> Any:
    """Return names of fields; raises `InvalidQueryError` if they are one text, whose letters would be names."""
    if isinstance(names, str):
        raise InvalidQueryError(f"{what} is the text {names!r}; write {what}=[{names!r}]", field=what)
    if not isinstance(names, Iterable):
        raise InvalidQueryError(f"{what} is {shown(names)}; write a list of names", field=what)
    return names


def check_values(what: str, values: object) -> None:
    """Refuse values that are not given by field, with `InvalidValueError`."""
    if values is not None and not isinstance(values, Mapping):
        raise InvalidValueError(f"{what} is {shown(values)}; write the values by field, {what}={{...}}", field=what)


def check_item(verb: str, item: object) -> None:
    """Refuse what is not an item, with `InvalidValueError`."""
    if not isinstance(item, Entity):
        raise InvalidValueError(f"{verb} takes an item, such as User(...); it got {shown(item)}")


def check_key(verb: str, model: object, key: object) -> None:
    """Refuse a class that is not an entity's, and a key of something else, with `InvalidKeyError`.

    An item of another class has fields of the same names, which would name an item that the caller did not mean.
    """
    if not isinstance(model, type) or not issubclass(model, Entity):
        raise InvalidKeyError(
            f"{verb} takes the class of an entity and a key; in place of the class it got {shown(model)}"
        )
    if isinstance(key, Entity) and not isinstance(key, model):
        raise InvalidKeyError(f"{verb} takes the key of a {model.__name__}; it got a {type(key).__name__}")
    if not isinstance(key, Entity | Mapping):
        raise InvalidKeyError(f"{verb}: the key is {shown(key)}; write its fields, {{...}}, or pass the item")
