"""What callers give to calls, refused with what to write instead before anything is sent."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import wraps
from inspect import signature
from typing import Any, Final, ParamSpec, TypeVar
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


_EXAMPLES: Final = {
    **{call: f"{call}(User(...))" for call in ("create", "put")},
    **{call: f'{call}("ada"), or {call}({{"id": ...}})' for call in ("delete", "find", "get")},
    "batch": "batch([Put(item), Get(key)])",
    "batch_get": "batch_get([...])",
    "batch_write": "batch_write([...], delete=[...])",
    "update": 'update("ada", {"field": value})',
}
"""How the calls of a collection are written."""
_TOKEN: Final = re.compile(r"[!-~]+")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def checked(call: Callable[P, R], *, of: str = "", example: str = "") -> Callable[P, R]:
    """Refuse arguments that a function does not have with `InvalidQueryError`, which says how it is written.

    Errors from inside of it pass. It is called `of` in messages, by its own name if empty.
    """

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return call(*args, **kwargs)
        except TypeError as error:
            if (problem := _problem(call, args, kwargs)) is None:
                raise
            cure = example or _EXAMPLES[call.__name__]
            raise InvalidQueryError(f"{of or call.__name__}: {problem}; write {cure}") from error

    return checking


def written_as(example: str) -> Callable[[type[T]], type[T]]:
    """Refuse wrong arguments of a class as `checked` does, with an example of right ones."""

    def decorated(kind: type[T]) -> type[T]:
        init = checked(kind.__init__, of=kind.__name__, example=example)
        setattr(kind, "__init__", init)  # noqa: B010 - mypy refuses an assignment
        return kind

    return decorated


def _problem(call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments of a call; None if nothing is."""
    taken = signature(call)
    if unknown := [name for name in kwargs if name not in taken.parameters]:
        return f"{unknown[0]} is not an argument"
    try:
        taken.bind(*args, **kwargs)
    except TypeError as error:
        return str(error).replace("positional arguments", "values without a name")
    return None


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


def check_transport(transport: object) -> None:
    """Refuse a URL in place of what sends requests, with `ConfigurationError`."""
    if isinstance(transport, str):
        raise ConfigurationError(f"a client is opened over {transport!r}; write Client.rest(url, token=...)")


def check_token(token: object) -> None:
    """Refuse a token that is neither a text nor a function, with `ConfigurationError`."""
    if not isinstance(token, str) and not callable(token):
        raise ConfigurationError(f"token is {_shown(token)}; write a text, or a function that returns one")


def authorization(token: object) -> str:
    """Return the header with a token; raises `ConfigurationError`, which does not show it, if no header can have it."""
    if not isinstance(token, str):
        raise ConfigurationError(f"the function that returns a token returned {_shown(token)}; let it return a text")
    if not _TOKEN.fullmatch(token):
        cure = "write the token alone, without Bearer, as by token.strip()"
        raise ConfigurationError(f"the token is empty, or has a blank or a line end; {cure}")
    return f"Bearer {token}"


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if isinstance(value, str | int | float | tuple | None) else f"a {type(value).__name__}"
