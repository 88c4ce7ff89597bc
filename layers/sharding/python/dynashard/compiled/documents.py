"""Which items are written as JSON like a mapping of their fields, and which fields as the text that is stored."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import core_schema

from dynashard.compiled.schemas import WRAPPERS, is_any_time
from dynashard.model_schema import ModelSchema, Schema

_PLAIN: Final = frozenset({"str", "int", "float", "bool", "date", "datetime", "uuid", "enum"})
"""Types whose values orjson writes as pydantic does, or refuses."""
_MODEL: Final = frozenset({
    "type", "cls", "schema", "custom_init", "root_model", "config", "metadata", "model_name", "ref",
})  # fmt: skip
_FIELD: Final = frozenset({"type", "schema", "metadata", "frozen"})
"""Parts of core schemas that do not change the JSON of an item."""
_DATE: Final = "[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
_TIME: Final = r"([01][0-9]|2[0-3])(:[0-5][0-9]){2}\.[0-9]{5}[1-9]"
_SAME_TEXT: Final = core_schema.str_schema(
    pattern=f"^{_DATE}T{_TIME}Z$",
    strict=True,
    strip_whitespace=False,
    to_lower=False,
    to_upper=False,
    regex_engine="rust-regex",
)
"""Times whose stored text is their JSON text. Others are parsed: JSON has no fraction of zeros, and months differ."""


def is_written_as_fields(parts: ModelSchema) -> bool:
    """Return whether the JSON of an item is that of a mapping of its fields, which are all plain."""
    [whole, *inside] = parts.outer
    return (
        not inside
        and _plain_model(whole, whole.get("config", {}))
        and not parts.computed
        and not parts.definitions
        and all(map(_plain_field, parts.fields.values()))
    )


def as_text(schema: Any) -> Any:
    """Return the schema without parsing times only to write the same text again."""
    if schema["type"] in ("default", "nullable"):
        return {**schema, "schema": as_text(schema["schema"])}
    if is_any_time(schema):
        return core_schema.union_schema([_SAME_TEXT, schema], mode="left_to_right")
    return schema


def _plain_model(schema: Schema, config: Mapping[str, Any]) -> bool:
    """Whether a model is written as its fields are: nothing runs for the whole, and no setting changes their JSON."""
    if schema["type"] != "model" or not _MODEL.issuperset(schema) or schema.get("custom_init"):
        return False
    if config.get("extra_fields_behavior") == "allow" or schema.get("root_model"):
        return False
    settings = {name for name in config if name.startswith("ser")} - {"ser_json_bytes"}
    return not settings


def _plain_field(field: Schema) -> bool:
    """Whether a field is written under its own name, by the rule of its type."""
    if not _FIELD.issuperset(field):
        return False
    schema = field["schema"]
    while schema["type"] in WRAPPERS and "serialization" not in schema:
        schema = schema["schema"]
    if "serialization" in schema or (schema["type"] == "enum" and schema.get("sub_type") != "str"):
        return False
    return schema["type"] in _PLAIN
