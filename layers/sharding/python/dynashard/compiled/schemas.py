"""What core schemas of pydantic say of how values are validated."""

from typing import Any, Final

from pydantic import BaseModel

from dynashard.model_schema import ModelSchema, Schema

WRAPPERS: Final = frozenset({
    "default", "nullable", "function-after", "function-before", "function-wrap",
})  # fmt: skip
"""Schemas around the schema of a value."""
_AFTER: Final = frozenset({"default", "nullable", "function-after"})
"""Those that see a value only when it is validated."""
_TEXTS: Final = frozenset({"str", "date", "time", "datetime", "uuid", "url"})
_ANY_TIME: Final = frozenset({"type", "metadata", "microseconds_precision"})
_MODEL: Final = frozenset({"type", "cls", "schema", "custom_init", "root_model", "config", "metadata", "model_name"})
_CONFIG: Final = frozenset({
    "title", "extra_fields_behavior", "validate_assignment", "allow_inf_nan", "ser_json_bytes", "val_json_bytes",
})  # fmt: skip
"""Parts of a model, and settings, with which it is validated field by field, and a text is not changed.

A part that is not among them, such as the one that initialises private attributes, makes the model validate its items.
"""


def keeps_texts(parts: ModelSchema) -> bool:
    """Return whether no setting of a model changes or refuses a text."""
    return _CONFIG.issuperset(parts.config or {})


def value_schema(schema: Schema) -> Schema:
    """Return the schema of a field's value, without what is around it."""
    while schema["type"] in WRAPPERS:
        schema = schema["schema"]
    return schema


def stored_tag(schema: Schema) -> str:
    """Return the type of the stored attributes whose values a field validates as they are; empty if it takes others.

    A text is its own value, and so is a boolean. A number is stored as a text, which numbers are validated of as well,
    unless something sees it before.
    """
    plain = value_schema(schema)
    kind = plain["type"]
    if kind in _TEXTS or _is_choice_of_texts(plain):
        return "S"
    if kind == "bool":
        return "BOOL"
    return "N" if kind in ("int", "float") and not plain.get("strict") and _sees_validated(schema) else ""


def _is_choice_of_texts(plain: Schema) -> bool:
    if plain["type"] == "enum":
        return bool(plain.get("sub_type") == "str")
    return plain["type"] == "literal" and all(type(each) is str for each in plain["expected"])


def _sees_validated(schema: Schema) -> bool:
    while schema["type"] in WRAPPERS:
        if schema["type"] not in _AFTER:
            return False
        schema = schema["schema"]
    return True


def bare(schema: Schema) -> Schema | None:
    """Return the schema of a value around which there are only a default and None; None if there is more."""
    while schema["type"] in ("default", "nullable"):
        if "on_error" in schema:
            return None
        schema = schema["schema"]
    return None if schema["type"] in WRAPPERS else schema


def is_any_time(plain: Schema) -> bool:
    """Return whether a schema takes every time, and changes none."""
    return plain["type"] == "datetime" and _ANY_TIME.issuperset(plain)


def asks_for_others(schema: Any) -> bool:
    """Return whether a validator in a core schema takes the fields that were validated before."""
    if isinstance(schema, dict):
        if schema.get("type") == "with-info" or schema.get("default_factory_takes_data"):
            return True
        return any(asks_for_others(part) for name, part in schema.items() if name != "metadata")
    return isinstance(schema, list | tuple) and any(map(asks_for_others, schema))


def is_its_fields(model: type[BaseModel], parts: ModelSchema) -> bool:
    """Return whether an instance is its validated fields, and nothing else runs when it is made."""
    [whole, *inside] = parts.outer
    return (
        not inside
        and (_MODEL | {"ref"}).issuperset(whole)
        and _CONFIG.issuperset(whole.get("config", {}))
        and not whole.get("root_model")
        and not whole.get("custom_init")
        and model.__new__ is object.__new__
        and not asks_for_others([dict(parts.fields), list(parts.definitions.values())])
    )


def sees_validated_fields(part: Schema) -> bool:
    """Return whether what is around a model's fields sees them only when they are validated, and takes no others."""
    allows_others = part.get("config", {}).get("extra_fields_behavior") == "allow"
    return part["type"] in ("model", "function-after") and not part.get("custom_init") and not allows_others
