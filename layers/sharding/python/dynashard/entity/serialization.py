"""The JSON form of items: one text for one value, whichever process wrote or read it.

Pydantic writes a Decimal with the zeros and the exponent it was created with, and a set in an order that differs
between processes. The answer to a write and a later read have the same strong ETag, so their texts must be equal.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic_core import SchemaSerializer, core_schema

from dynashard.codec import plain_text

NOT_SCHEMAS: Final = frozenset({"metadata", "default", "expected", "serialization", "config"})
"""Members of a pydantic core schema that hold no schema, although they may hold dictionaries."""


def canonical_serializer(schema: Mapping[str, Any]) -> SchemaSerializer | None:
    """Return a serializer that writes decimals plainly and sets sorted; None if a model's schema has neither."""
    changed: list[str] = []
    canonical = _canonical(schema, changed)
    # Prebuilt serializers are those of the nested models' own classes, which are not canonical.
    return SchemaSerializer(canonical, None, _use_prebuilt=False) if changed else None


def _canonical(schema: Any, changed: list[str]) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(_canonical(each, changed) for each in schema)
    if not isinstance(schema, dict):
        return schema
    result = {name: each if name in NOT_SCHEMAS else _canonical(each, changed) for name, each in schema.items()}
    kind = schema.get("type")
    if "serialization" in schema or not isinstance(kind, str):
        return result
    if kind == "decimal":
        plain = core_schema.plain_serializer_function_ser_schema
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
