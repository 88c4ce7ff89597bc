"""Validators of stored items that are only written as JSON: they return mappings of plain values.

They check items as the validators of `stored_form` do. A page that is only written needs no instances of its model, and
takes a quarter of the CPU time without them.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import SchemaValidator, core_schema

from dynashard.compiled.stored_form import Decode, stored_field, unwrapped

_PLAIN: Final = frozenset({"str", "int", "float", "bool", "date", "datetime", "uuid", "enum"})
"""Types whose values orjson writes as pydantic does, or refuses."""
_MODEL: Final = frozenset({"type", "cls", "schema", "custom_init", "root_model", "config", "metadata", "model_name"})
_FIELD: Final = frozenset({"type", "schema", "metadata", "frozen", "validation_alias"})
"""Parts of core schemas that do not change the JSON of an item."""
_UNBOUNDED: Final = frozenset({"type", "microseconds_precision"})
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


def documents_validator(
    model: type[BaseModel],
    attributes: Mapping[str, str],
    decode: Decode,
    texts: Mapping[str, str],
    parsed: Collection[str] = (),
) -> SchemaValidator | None:
    """Return a validator of a stored item, which returns a dictionary in the order of its fields.

    `attributes` are the names of the stored attributes of all fields. The dictionary ends with `texts`: members by the
    names of stored texts, empty if they are not stored. `parsed` fields have the values of the model, not perhaps the
    same text. None if its JSON could differ from that of the model.
    """
    outer, inner, _ = unwrapped(model)
    fields: Mapping[str, Any] = inner["fields"]
    if fields.keys() != attributes.keys() or fields.keys() & texts.keys() or not written_as_fields(model):
        return None
    members = {
        name: _member(stored_field(field, attributes[name], name, decode), parsed=name in parsed)
        for name, field in fields.items()
    }
    for name, attribute in texts.items():
        text = core_schema.with_default_schema(core_schema.str_schema(strict=True), default="")
        paths: list[list[str | int]] = [[attribute, "S"], [attribute]]
        members[name] = core_schema.typed_dict_field(text, validation_alias=paths)
    config = outer[0].get("config", {})
    return SchemaValidator(core_schema.typed_dict_schema(members, extra_behavior="ignore", config=config))


def written_as_fields(model: type[BaseModel]) -> bool:
    """Whether the JSON of an item is that of a mapping of its fields, which are all plain."""
    outer, inner, definitions = unwrapped(model)
    return (
        len(outer) == 1
        and _plain_model(outer[0], outer[0].get("config", {}))
        and not inner.get("computed_fields")
        and not definitions
        and all(map(_plain_field, inner["fields"].values()))
    )


def as_text(schema: Any) -> Any:
    """The schema without parsing times only to write the same text again."""
    if schema["type"] in ("default", "nullable"):
        return {**schema, "schema": as_text(schema["schema"])}
    if schema["type"] == "datetime" and _UNBOUNDED.issuperset(schema):
        return core_schema.union_schema([_SAME_TEXT, schema], mode="left_to_right")
    return schema


def _plain_model(schema: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a model is written as its fields are: nothing runs for the whole, and no setting changes their JSON."""
    if schema["type"] != "model" or not _MODEL.issuperset(schema) or schema.get("custom_init"):
        return False
    if config.get("extra_fields_behavior") == "allow" or schema.get("root_model"):
        return False
    settings = {name for name in config if name.startswith("ser")} - {"ser_json_bytes"}
    return not settings


def _plain_field(field: Mapping[str, Any]) -> bool:
    """Whether a field is written under its own name, by the rule of its type."""
    if not _FIELD.issuperset(field):
        return False
    schema = field["schema"]
    while schema["type"] in ("default", "nullable") and "serialization" not in schema:
        schema = schema["schema"]
    if "serialization" in schema or (schema["type"] == "enum" and schema.get("sub_type") != "str"):
        return False
    return schema["type"] in _PLAIN


def _member(field: Mapping[str, Any], *, parsed: bool) -> Any:
    """The field of a model as that of a mapping."""
    schema = field["schema"] if parsed else as_text(field["schema"])
    return core_schema.typed_dict_field(schema, validation_alias=field["validation_alias"])
