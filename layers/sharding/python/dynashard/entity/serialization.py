"""The JSON form of items: one text for one value, whichever process wrote or read it.

Pydantic writes a Decimal with the zeros and the exponent it was created with, and a set in an order that differs
between processes. The answer to a write and a later read have the same strong ETag, so their texts must be equal.

A fraction in a value of any type, as in `dict[str, Any]`, is read as a Decimal, which pydantic writes as text. It is
written as the number that it was sent as, or a patch would store the text.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic_core import SchemaSerializer, core_schema

from dynashard.codec import plain_text
from dynashard.entity.values import json_numbers

NOT_SCHEMAS: Final = frozenset({"metadata", "default", "expected", "serialization", "config"})
"""Members of a pydantic core schema that hold no schema, although they may hold dictionaries."""

_KEPT: Final = NOT_SCHEMAS | {"keys_schema"}
_ANY_WITHIN: Final = {"dict": "values_schema", "list": "items_schema"}
"""Schemas of values of any type unless they name another one."""


def canonical_serializer(schema: Mapping[str, Any]) -> SchemaSerializer | None:
    """Return a serializer that writes decimals plainly and sets sorted; None if a model's schema holds neither."""
    changed: list[str] = []
    canonical = _canonical(schema, changed)
    # Prebuilt serializers are those of the nested models' own classes, which are not canonical.
    return SchemaSerializer(canonical, None, _use_prebuilt=False) if changed else None


def _canonical(schema: Any, changed: list[str]) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(_canonical(each, changed) for each in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _ANY_WITHIN:
        schema = {_ANY_WITHIN[kind]: core_schema.any_schema(), **schema}
    result = {name: each if name in _KEPT else _canonical(each, changed) for name, each in schema.items()}
    if "serialization" in schema or not isinstance(kind, str):
        return result
    plain = core_schema.plain_serializer_function_ser_schema
    if kind == "any":
        result["serialization"] = plain(json_numbers, when_used="json")
    elif kind == "decimal":
        result["serialization"] = plain(
            lambda each: plain_text(each) if isinstance(each, Decimal) else each, when_used="json"
        )
    elif kind in ("set", "frozenset"):
        inner: Any = dict(result)
        wrap = core_schema.wrap_serializer_function_ser_schema
        result["serialization"] = wrap(_sorted, schema=inner, when_used="json")
    else:
        return result
    changed.append(kind)
    return result


def _sorted(value: Any, write: Any) -> Any:
    written: Iterable[Any] = write(value)
    try:
        return sorted(written)
    except TypeError:
        return sorted(written, key=repr)
