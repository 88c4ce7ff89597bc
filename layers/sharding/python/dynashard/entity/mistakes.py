"""Mistakes in declarations, each refused with what to write instead. Every check raises `WrongDeclarationError`."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, Final

from dynashard.entity.declaration import (
    INDEX_EXAMPLE,
    KEY_EXAMPLE,
    NAME_EXAMPLE,
    UNIQUE_EXAMPLE,
    Index,
    Key,
    Shards,
    Unique,
    WrongDeclarationError,
)
from dynashard.entity.serialization import NOT_SCHEMAS
from dynashard.model_schema import NESTED, OBJECTS

_WITH_FIELDS: Final = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_CLASS: Final = re.compile(r"<class '(.+?)'>")
_FIELD: Final = re.compile(r"Field '(\w+)' conflicts")
"""What messages of pydantic name."""
_FORBID: Final = '__pydantic_config__ = ConfigDict(extra="forbid")'
_SYNONYMS: Final = {
    "expires": {"ttl", "expires_at", "expiry"},
    "indexes": {"index", "gsi", "gsis"},
    "key": {"pk", "sk", "partition", "partition_key", "sort", "sort_key", "prefix"},
    "name": {"entity", "type", "table"},
    "shards": {"shard", "count"},
    "unique": {"uniques", "unique_together", "constraints", "unique_fields"},
}


def pydantic_problem(error: Exception, called: str, namespace: Collection[str]) -> str:
    """Return what pydantic, or Python, refuses in the body of the class `called`, and what to write instead.

    `namespace` are the names in the body, none if the class has its arguments.
    """
    first = str(error).partition("\n")[0]
    if "arbitrary_types_allowed" in first and (found := _CLASS.search(str(error))):
        name = found[1].rpartition(".")[2]
        instead = "str, int, Decimal, datetime, bytes, a list, a dict or a nested model"
        return f"has a field of type {name}, which cannot be stored: write {instead}"
    if "non-annotated" not in first and "type annotation" not in first:
        return first
    if own := [name for name in namespace if name in _SYNONYMS]:
        arguments = ", ".join(f"{name}=..." for name in own)
        return f"has {' and '.join(own)} in its body: write class {called}(Entity, {arguments})"
    return f"{first.partition('. ')[0]}; write each field as `name: type`"


def hidden_method(error: ValueError) -> str | None:
    """Return what to write if pydantic refuses a field because it has the name of a method; else None."""
    if "protected namespace" not in str(error) or not (found := _FIELD.search(str(error))):
        return None
    return f"field {found[1]} hides a method of its class; write another name, such as {found[1]}_"


def check_arguments(unknown: Collection[str], known: Sequence[str]) -> None:
    """Refuse unknown class arguments, with the one that was probably meant."""
    for name in unknown:
        from difflib import get_close_matches  # noqa: PLC0415 - few declarations have mistakes

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


def check_unique(unique: object) -> tuple[Unique, ...]:
    """Refuse what does not say which fields are unique, and return each as a `Unique`."""
    if isinstance(unique, str | Unique):
        unique = (unique,)
    if isinstance(unique, Mapping) or not isinstance(unique, Iterable):
        raise WrongDeclarationError(f"unique is {_shown(unique)}: write {UNIQUE_EXAMPLE}")
    found = tuple(Unique(each) if isinstance(each, str) else each for each in unique)
    for each in found:
        if isinstance(each, tuple | list):
            raise WrongDeclarationError(
                f"unique has {_shown(each)}: write Unique({_shown(tuple(each))}) for fields that are unique together"
            )
        _require("a member of unique", each, Unique, UNIQUE_EXAMPLE)
        named = isinstance(each.fields, str | tuple | list) and all(isinstance(name, str) for name in each.names)
        if not named or not each.names:
            raise WrongDeclarationError(f"fields of Unique is {_shown(each.fields)}: write {UNIQUE_EXAMPLE}")
        _require("within of Unique", each.within, str | None, 'a template, such as within="{tenant_id}"')
        _require("building of Unique", each.building, bool, "building=True, or leave it out")
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


def check_nested(schema: object, own: type) -> frozenset[str]:
    """Refuse models in the fields that ignore unknown names or read others than they store: data would be lost.

    Refuse what a later reader would refuse too.

    Return the kinds of schemas of values that may be objects, which the core `schema` of the entity has besides that of
    its `own` class.
    """
    found = set[str]()
    for each in _schemas(schema):
        kind, model = each.get("type"), each.get("cls")
        # The fields of a model are a dictionary too, and one of them may be called `type`.
        if isinstance(kind, str) and kind in _WITH_FIELDS:
            _refuse_aliases(each)
        if each.get("now_op") == "future":
            raise WrongDeclarationError(
                f"holds a {kind} that must be in the future, and could not be read once it has passed: write {kind}, "
                "and check it where items are made"
            )
        if not isinstance(kind, str) or kind not in OBJECTS or model is own:
            continue
        found.add(kind)
        if kind not in NESTED:
            continue
        config = each.get("config") or {}
        forbids = each.get("extra_behavior", config.get("extra_fields_behavior")) == "forbid"
        if isinstance(model, type) and not each.get("root_model") and not forbids:
            how = f'class {model.__name__}(BaseModel, extra="forbid")' if kind == "model" else _FORBID
            raise WrongDeclarationError(
                f"holds a {model.__name__}, which does not refuse unknown fields: write `{how}`"
            )
    return frozenset(found)


def _refuse_aliases(schema: Mapping[str, Any]) -> None:
    """Refuse fields with an alias: they are stored by their names, and would be read by other ones."""
    fields = schema["fields"]
    for name, field in fields.items() if isinstance(fields, Mapping) else ((each["name"], each) for each in fields):
        if "validation_alias" in field or "serialization_alias" in field:
            typed = getattr(schema.get("cls"), "__name__", "model")
            raise WrongDeclarationError(
                f"holds a {schema.get('model_name') or schema.get('dataclass_name') or typed}, whose field {name} has "
                "an alias: stored attributes are named like their fields; leave the alias out"
            )


def _schemas(schema: object) -> Iterator[dict[str, Any]]:
    """Return a pydantic core schema and all that it holds."""
    if isinstance(schema, dict):
        yield schema
        schema = [each for name, each in schema.items() if name not in NOT_SCHEMAS]
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from _schemas(each)


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)[:100]
