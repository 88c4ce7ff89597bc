"""What callers give to calls, refused with what to write instead before anything is sent."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel

from dynashard_client.answers import Written
from dynashard_client.errors import ConfigurationError, InvalidKeyError, InvalidQueryError, InvalidValueError

_INSTEAD: Final = {
    **dict.fromkeys(("desc", "descending", "reverse"), 'order="ordered", direction="desc"'),
    **dict.fromkeys(("from_", "since"), "start="),
    **dict.fromkeys(("filter", "where"), "filters={...}"),
    **dict.fromkeys(("next_token", "offset", "page"), "cursor=page.cursor"),
    **dict.fromkeys(("page_size", "per_page", "size"), "limit="),
}
"""What other libraries call the arguments of listings, and how they are written here."""


def check_item(model: type[BaseModel], item: object) -> None:
    """Refuse what is not an item of the class, with `InvalidValueError`."""
    if not isinstance(item, model):
        name = model.__name__
        cure = "written.item" if isinstance(item, Written) else f"{name}(...)"
        raise InvalidValueError(f"a {name} is stored; it got {_shown(item)}; write {cure}")


def check_key(name: str, address: Iterable[str], key: object) -> None:
    """Refuse what names no item, with `InvalidKeyError`: an item without the fields, a tuple, what a put returned."""
    fields = [*address]
    if isinstance(key, Written):
        raise InvalidKeyError(f"the key of {name} is what a put returned; write written.item")
    if isinstance(key, BaseModel):
        lacking = next((each for each in fields if each not in type(key).model_fields), None)
        if lacking is None:
            return
    elif key is None or isinstance(key, Mapping | str | int | UUID | date):
        return
    example = ", ".join(f'"{each}": ...' for each in fields)
    raise InvalidKeyError(f"the key of {name} is {', '.join(fields)}; it got {_shown(key)}; write {{{example}}}")


def check_several(call: str, given: object) -> None:
    """Refuse one item or key in place of a list, with `InvalidKeyError`."""
    if isinstance(given, str | Mapping | BaseModel | Written) or not isinstance(given, Iterable):
        raise InvalidKeyError(f"{call} takes a list; it got {_shown(given)}; write {call}([...])")


def check_revision(if_match: object) -> None:
    """Refuse a revision that is not a text, such as the item itself, with `InvalidValueError`."""
    if if_match is not None and not isinstance(if_match, str):
        raise InvalidValueError(f"if_match is {_shown(if_match)}; write if_match=item.revision")


def check_listing(partition: object, fields: object, choosing: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse arguments that no listing takes, with `InvalidQueryError`."""
    for name in choosing:
        if name not in known:
            cure = _INSTEAD.get(name) or f'{{"{name}": ...}} first, or filters={{"{name}": ...}}'
            raise InvalidQueryError(f"{name} is not an argument of listings; write {cure}")
    filters = choosing.get("filters")
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidQueryError(
            f'filters is {_shown(filters)}; write {{"field": value}} or {{"field": {{"gte": value}}}}'
        )
    if partition is not None and not isinstance(partition, Mapping):
        raise InvalidQueryError(f'a partition is {_shown(partition)}; write its fields, {{"field": value}}')
    check_fields(fields)


def check_fields(fields: object) -> None:
    """Refuse names of fields that are one text, whose letters would be names, with `InvalidQueryError`."""
    if isinstance(fields, str):
        raise InvalidQueryError(f"fields is the text {fields!r}; write fields=[{fields!r}]")


def check_token(token: object) -> None:
    """Refuse a token that is neither a text nor a function, with `ConfigurationError`."""
    if not isinstance(token, str) and not callable(token):
        raise ConfigurationError(f"token is {_shown(token)}; write a text, or a function that returns one")


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if isinstance(value, str | int | float | tuple | None) else f"a {type(value).__name__}"
