"""Mistakes in declarations, each refused with what to write instead. Every check raises `WrongDeclarationError`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final

from dynashard.entity.declaration import (
    INDEX_EXAMPLE,
    KEY_EXAMPLE,
    NAME_EXAMPLE,
    Index,
    Key,
    Shards,
    WrongDeclarationError,
)
from dynashard.entity.serialization import NOT_SCHEMAS

_NESTED: Final = frozenset({"model", "typed-dict", "dataclass"})
_FORBID: Final = '__pydantic_config__ = ConfigDict(extra="forbid")'
_SYNONYMS: Final = {
    "expires": {"ttl", "expires_at", "expiry"},
    "indexes": {"index", "gsi", "gsis"},
    "key": {"pk", "sk", "partition", "partition_key", "sort", "sort_key", "prefix"},
    "name": {"entity", "type", "table"},
    "shards": {"shard", "count"},
}


def check_arguments(unknown: Collection[str], known: Sequence[str]) -> None:
    """Refuse unknown class arguments, with the one that was probably meant."""
    for name in unknown:
        synonyms = [argument for argument, words in _SYNONYMS.items() if name.lower() in words]
        meant = synonyms or get_close_matches(name, known, n=1)
        hint = f"; write {meant[0]}=" if meant else ""
        raise WrongDeclarationError(f"has no class argument {name!r}{hint}. The class arguments are {', '.join(known)}")


def check_parts(name: object, key: object, shards: object, indexes: object, expires: object) -> tuple[Index, ...]:
    """Refuse parts of a declaration that have the wrong type, and return the indexes."""
    _require("name", name, str, f"a text, such as {NAME_EXAMPLE}")
    _require("key", key, Key, f"key={KEY_EXAMPLE}")
    _require_types("the key", key, KEY_EXAMPLE)
    _require_shards("shards", shards)
    _require("expires", expires, str | None, 'the field\'s name, such as expires="expires_at"')
    if isinstance(indexes, str | Mapping) or not isinstance(indexes, Iterable):
        raise WrongDeclarationError(f"indexes is {_shown(indexes)}: write a list, indexes=[{INDEX_EXAMPLE}]")
    found = tuple(indexes)
    for index in found:
        _require("index", index, Index, INDEX_EXAMPLE)
        _require_shards(f"shards of index {index.name}", index.shards)
        _require_types(f"index {index.name}", index, INDEX_EXAMPLE)
    return found


def _require(what: str, value: object, kind: type | UnionType, example: str) -> None:
    if not isinstance(value, kind):
        raise WrongDeclarationError(f"{what} is {_shown(value)}: write {example}")


def _require_shards(what: str, shards: object) -> None:
    count = shards if isinstance(shards, int) and not isinstance(shards, bool) and shards > 0 else 16
    _require(what, shards, Shards | None, f"shards=Shards({count})")


def _require_types(what: str, part: Any, example: str) -> None:
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(field.type, type | UnionType):
            _require(f"{field.name} of {what}", value, field.type, f"a text, as in {example}")
        elif field.type == Sequence[str]:
            names = value if isinstance(value, tuple | list) else [None]
            if not all(isinstance(name, str) for name in names):
                raise WrongDeclarationError(
                    f'{field.name} of {what} is {_shown(value)}: write a tuple of field names, such as ("seq",)'
                )


def check_nested(schema: object, own: type) -> bool:
    """Refuse models in the fields that ignore unknown names, because data that a caller sends would be lost.

    Args:
        schema: the entity's core schema.
        own: the entity's class.

    Returns:
        Whether there are models in the fields.
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
    inside = check_nested([each for name, each in schema.items() if name not in NOT_SCHEMAS], own)
    return nested or inside


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)[:100]
