"""Validators that take items as they are stored, `{"email": {"S": "a@example.com"}}`: decoded and checked in one pass.

Pydantic-core finds the values of plain fields by their paths, such as `email` and `S`; others are decoded by the codec
before they are checked. A validator accepts only what decoding first and validating then accepts, with the same result.
So an item that it refuses is decoded first, which has the errors.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import SchemaValidator, core_schema

Decode = Callable[[str, Any], Any]
"""Returns the value of a field from its stored attribute; takes the field's name and the attribute."""

_TAGS: Final = {
    **dict.fromkeys(("str", "date", "time", "datetime", "uuid", "url"), "S"),
    **dict.fromkeys(("int", "float"), "N"),
    "bool": "BOOL",
}
"""How pydantic's plain types are stored. None of them accepts a whole attribute in place of its value."""
NOWHERE: Final = ""
"""An attribute that no item has: DynamoDB refuses empty names."""


def item_validator(model: type[BaseModel], attributes: Mapping[str, str], decode: Decode) -> SchemaValidator | None:
    """Return a validator of whole items, which returns instances of the model.

    `attributes` are the names of the stored attributes by field; other fields get their defaults. None if a validator
    of the model must see all values decoded.
    """
    outer, inner, definitions = unwrapped(model)
    found = {
        name: stored_field(field, attributes.get(name, NOWHERE), name, decode)
        for name, field in inner["fields"].items()
    }
    made = {**inner, "fields": found, "extra_behavior": "ignore"}
    for each in reversed(outer):
        config = each.get("config", {})
        if each["type"] not in ("model", "function-after") or each.get("custom_init"):
            return None
        if config.get("extra_fields_behavior") == "allow":
            return None
        made = {**each, "schema": made}
    return validator_of(made, None, definitions)


def plain_tag(schema: Any) -> str | None:
    """How a field's values are stored if its core schema is plain, and accepts all that is stored; None for others."""
    while schema["type"] in ("default", "nullable"):
        if "on_error" in schema or schema.get("default_factory_takes_data"):
            return None
        schema = schema["schema"]
    return None if schema.get("strict") else _tag(schema)


def fields_validator(model: type[BaseModel], attributes: Mapping[str, str], decode: Decode) -> SchemaValidator | None:
    """Return a validator that returns these fields of an item, as the first member of a tuple.

    Fields that are not stored get their defaults, and None if these are made by a function. None if a field's validator
    asks for other fields.
    """
    outer, inner, definitions = unwrapped(model)
    found = {name: stored_field(given(inner["fields"][name]), at, name, decode) for name, at in attributes.items()}
    if _asks_for_others([found, list(definitions.values())]):
        return None
    made = {**inner, "fields": found, "extra_behavior": "ignore", "computed_fields": []}
    return validator_of(made, outer[-1].get("config"), definitions)


def unwrapped(model: type[BaseModel]) -> tuple[list[Any], Any, dict[str, Any]]:
    """Return a model's core schema in parts: what is around its fields, the outermost first; they; its definitions."""
    schema: Any = model.__pydantic_core_schema__
    outer, definitions = [], dict[str, Any]()
    while schema["type"] != "model-fields":
        if schema["type"] == "definitions":
            definitions |= {each["ref"]: each for each in schema["definitions"]}
        elif schema["type"] == "definition-ref":
            schema = definitions[schema["schema_ref"]]
            continue
        else:
            # The fields refer to the whole by its name among the definitions.
            outer.append({name: part for name, part in schema.items() if name != "ref"})
        schema = schema["schema"]
    return outer, schema, definitions


def validator_of(schema: Any, config: Any, definitions: Mapping[str, Any]) -> SchemaValidator:
    """Return a validator of a core schema that may refer to these definitions."""
    if definitions:
        schema = {"type": "definitions", "schema": schema, "definitions": list(definitions.values())}
    # Prebuilt validators are those of the models' own classes, which take decoded values.
    return SchemaValidator(schema, config, _use_prebuilt=False)


def _asks_for_others(schema: Any) -> bool:
    """Whether a validator in a core schema takes the fields that were validated before."""
    if isinstance(schema, dict):
        parts = (part for name, part in schema.items() if name != "metadata")
        return schema.get("type") == "with-info" or any(map(_asks_for_others, parts))
    return isinstance(schema, list | tuple) and any(map(_asks_for_others, schema))


def given(field: Any) -> Any:
    """Return the field with None in place of a function that makes its default."""
    schema = {name: part for name, part in field["schema"].items() if not name.startswith("default_factory")}
    return field if len(schema) == len(field["schema"]) else {**field, "schema": {**schema, "default": None}}


def _tag(plain: Any) -> str | None:
    """How values of a core schema are stored, if they are plain; None for others."""
    if plain["type"] == "enum" and plain.get("sub_type") == "str" and "missing" not in plain:
        return "S"
    return _TAGS.get(plain["type"])


def stored_field(field: Any, attribute: str, name: str, decode: Decode) -> Any:
    """The core schema of a field, which takes its value from a stored attribute."""
    schema = field["schema"]
    plain, default = schema, schema["type"] == "default"
    while plain["type"] in ("default", "nullable") and "on_error" not in plain:
        plain = plain["schema"]
    # A time of expiry is stored under another name, and as a number.
    if attribute in (name, NOWHERE) and (tag := _tag(plain)):
        # An attribute of another type is found by the second path, and refused.
        return {**field, "validation_alias": [[attribute, tag], [attribute]]}

    def decoded(stored: Any) -> Any:
        return decode(name, stored)

    inner = core_schema.no_info_before_validator_function(decoded, schema["schema"] if default else schema)
    return {**field, "schema": {**schema, "schema": inner} if default else inner, "validation_alias": attribute}
