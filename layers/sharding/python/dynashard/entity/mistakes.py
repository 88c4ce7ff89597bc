"""Mistakes in declarations, each refused with what to write instead."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pydantic.fields import FieldInfo

from dynashard.entity.declaration import Index, Key, Shards, WrongDeclarationError, created_at, new_id, updated_at
from dynashard.entity.serialization import NOT_SCHEMAS

KEY_EXAMPLE: Final = 'key=Key(partition="{tenant_id}", sort="{id}")'
INDEX_EXAMPLE: Final = 'Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}")'
NAME_EXAMPLE: Final = 'name="user.v1.User"'

_NESTED: Final = frozenset({"model", "typed-dict", "dataclass"})
_FORBID: Final = '__pydantic_config__ = ConfigDict(extra="forbid")'
_OTHER_WORDS: Final = {
    "ttl": "expires",
    "expires_at": "expires",
    "expiry": "expires",
    "index": "indexes",
    "gsi": "indexes",
    "gsis": "indexes",
    "pk": "key",
    "sk": "key",
    "partition": "key",
    "partition_key": "key",
    "sort": "key",
    "sort_key": "key",
    "prefix": "key",
    "entity": "name",
    "type": "name",
    "table": "name",
    "shard": "shards",
    "count": "shards",
}
_FILLED: Final = {
    new_id: "str = new_id()",
    created_at: "datetime = created_at()",
    updated_at: "datetime = updated_at()",
}


def check_arguments(unknown: Collection[str], known: Iterable[str]) -> None:
    """Refuse unknown class arguments.

    Raises:
        WrongDeclarationError: names the argument that was probably meant.
    """
    arguments = [*known]
    for name in unknown:
        close = get_close_matches(name, arguments, n=1)
        meant = _OTHER_WORDS.get(name.lower(), close[0] if close else None)
        hint = f"; write {meant}=" if meant in arguments else ""
        raise WrongDeclarationError(
            f"has no class argument {name!r}{hint}. The class arguments are {', '.join(arguments)}"
        )


def check_parts(name: object, key: object, shards: object, indexes: object, expires: object) -> tuple[Index, ...]:
    """Refuse parts of a declaration that have the wrong type.

    Returns:
        The indexes.

    Raises:
        WrongDeclarationError: with what to write.
    """
    if not isinstance(name, str):
        raise WrongDeclarationError(f"name is {name!r}: write a text, such as {NAME_EXAMPLE}")
    _check_key(key)
    if shards is not None and not isinstance(shards, Shards):
        count = shards if isinstance(shards, int) and not isinstance(shards, bool) and shards > 0 else 16
        raise WrongDeclarationError(f"shards is {_shown(shards)}: write shards=Shards({count})")
    if expires is not None and not isinstance(expires, str):
        raise WrongDeclarationError(f'expires is {expires!r}: write the field\'s name, such as expires="expires_at"')
    return _checked_indexes(indexes)


def _check_key(key: object) -> None:
    if not isinstance(key, Key):
        raise WrongDeclarationError(f"key is {_shown(key)}: write {KEY_EXAMPLE}")
    parts: dict[str, object] = {"partition": key.partition, "sort": key.sort, "prefix": key.prefix}
    for part, value in {**parts, "separator": key.separator}.items():
        if not isinstance(value, str) and not (value is None and part in ("sort", "prefix")):
            raise WrongDeclarationError(f"{part} of the key is {_shown(value)}: write a text, as in {KEY_EXAMPLE}")
    _check_names("unpadded of the key", key.unpadded)


def _checked_indexes(indexes: object) -> tuple[Index, ...]:
    if isinstance(indexes, Index):
        raise WrongDeclarationError(f"indexes is one index: write a list, indexes=[Index({indexes.slot!r}, ...)]")
    if indexes is None or isinstance(indexes, str | Mapping) or not isinstance(indexes, Iterable):
        raise WrongDeclarationError(f"indexes is {_shown(indexes)}: write indexes=[{INDEX_EXAMPLE}]")
    found: list[Index] = []
    for each in indexes:
        if not isinstance(each, Index):
            raise WrongDeclarationError(f"index {_shown(each)}: write {INDEX_EXAMPLE}")
        _check_index(each)
        found.append(each)
    return tuple(found)


def _check_index(index: Index) -> None:
    texts: dict[str, object] = {"slot": index.slot, "name": index.name}
    templates: dict[str, object] = {"partition": index.partition, "sort": index.sort}
    for part, value in {**texts, **templates}.items():
        if not isinstance(value, str):
            raise WrongDeclarationError(f"index {index.name}: {part} is {_shown(value)}: write {INDEX_EXAMPLE}")
    if index.shards is not None and not isinstance(index.shards, Shards):
        raise WrongDeclarationError(f"index {index.name}: shards is {index.shards!r}: write shards=Shards(4)")
    if index.prefix is not None and not isinstance(index.prefix, str):
        raise WrongDeclarationError(f"index {index.name}: prefix is {index.prefix!r}: write a text, or leave it out")
    _check_names(f"index {index.name}: unpadded", index.unpadded)


def _check_names(what: str, names: object) -> None:
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise WrongDeclarationError(f'{what} is {_shown(names)}: write a tuple of field names, such as ("seq",)')


def check_constant(what: str, text: str, fields: Collection[str]) -> None:
    """Refuse a template without braces that is a field's name.

    Raises:
        WrongDeclarationError: with the braces.
    """
    if text in fields:
        raise WrongDeclarationError(
            f"{what} {text!r} is the same text for every item: write '{{{text}}}' for the field"
        )


def check_filled(name: str, field: FieldInfo) -> None:
    """Refuse `new_id` and the stamps without parentheses.

    Raises:
        WrongDeclarationError: with the call.
    """
    for function, written in _FILLED.items():
        if field.default is function or field.default_factory is function:
            raise WrongDeclarationError(f"field {name} is the function {function.__name__}: write `{name}: {written}`")


def check_nested(schema: object, own: type) -> bool:
    """Refuse models in the fields that ignore unknown names, because data that a caller sends would be lost.

    Args:
        schema: the entity's core schema.
        own: the entity's class.

    Returns:
        Whether there are models in the fields.

    Raises:
        WrongDeclarationError: with how to declare the model.
    """
    if isinstance(schema, list | tuple):
        # A list, so that every one is checked.
        found = [check_nested(each, own) for each in schema]
        return any(found)
    if not isinstance(schema, dict):
        return False
    kind, model = schema.get("type"), schema.get("cls")
    nested = kind in _NESTED and model is not own
    if nested and isinstance(model, type) and not schema.get("root_model"):
        config = schema.get("config") or {}
        if schema.get("extra_behavior", config.get("extra_fields_behavior")) != "forbid":
            how = f'class {model.__name__}(BaseModel, extra="forbid")' if kind == "model" else _FORBID
            raise WrongDeclarationError(
                f"holds a {model.__name__}, which does not refuse unknown fields: write `{how}`"
            )
    inside = [check_nested(each, own) for name, each in schema.items() if name not in NOT_SCHEMAS]
    return nested or any(inside)


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)[:100]
