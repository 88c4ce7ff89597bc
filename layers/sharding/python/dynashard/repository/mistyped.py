"""Refuses values of a wrong type where a caller gives them, and says what to write instead."""

from collections.abc import Iterable, Mapping
from typing import Any

from dynashard.entity import Entity
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError


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
