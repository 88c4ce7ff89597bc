"""Whether a value that was read has the form in which it is stored: objects where objects are, with the same members.

A validator may make an object of another stored value, or rename the keys of a mapping. It may have come later than the
items. A write cannot set a member of such an object by its path, because that is not stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel, RootModel

from dynashard.model_schema import OBJECTS, Schema, model_schema

_OWN: Final = frozenset({"model", "dataclass"})
"""Classes, which may have code of their own."""
_PASSING: Final = frozenset({
    "model-field", "typed-dict-field", "dataclass-field", "nullable", "default", "model-fields", "typed-dict",
    "dataclass-args", "list", "union", "tagged-union", "any", "json", "json-or-python",
})  # fmt: skip
"""What passes on what it holds as it is, unless another value replaces what is refused."""
_SAME_TEXT: Final = frozenset({"type", "metadata", "min_length", "max_length", "pattern", "strict"})
"""Parts of the schema of a text that change none."""
_CHANGED_TEXT: Final = frozenset({"str_strip_whitespace", "str_to_lower", "str_to_upper"})
_NOT_SET: Final = (MISSING, MISSING)


def rewritten_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the fields of a model whose values may have another form than the stored ones."""
    schema = model_schema(model)
    walk = _Walk(schema.definitions, [model.__pydantic_core_schema__])
    # A validator of the whole may change every field.
    whole = not all(each["type"] == "model" and as_read(each) for each in schema.outer)
    return frozenset(
        name for name, each in schema.fields.items() if (whole and walk.holds_object(each)) or not walk.keeps(each, ())
    )


def as_read(model: Schema) -> bool:
    """Return whether nothing of a model's own runs once its fields are validated."""
    return not model.get("custom_init") and model.get("post_init", False) in {None, False, "init_private_attributes"}


class _Walk:
    """A walk through core schemas, of which some refer to these definitions."""

    def __init__(self, definitions: Mapping[str, Schema], everything: Any) -> None:
        self._definitions = definitions
        self._keeps_texts = not any(_CHANGED_TEXT & each.keys() for each in _mappings(everything))

    def holds_object(self, schema: Schema) -> bool:
        """Return whether values of a schema may be or hold objects."""
        # A field may be called `type`: then this is its schema.
        return any(isinstance(kind := each.get("type"), str) and kind in OBJECTS for each in _mappings(schema))

    def keeps(self, schema: Schema, above: tuple[str, ...]) -> bool:
        """Return whether validation keeps the form of every value; `above` are the definitions that hold the schema."""
        if schema["type"] == "definition-ref":
            name = schema["schema_ref"]
            return name in above or self.keeps(self._definitions[name], (*above, name))
        if not self._passes_on(schema):
            return not self.holds_object(schema)
        return all(self.keeps(each, above) for each in _inside(schema))

    def _passes_on(self, schema: Schema) -> bool:
        """Whether a value consists of what it is validated of, in the same places."""
        kind = schema["type"]
        if kind in _OWN:
            return as_read(schema)
        if kind == "dict":
            keys = schema.get("keys_schema", {"type": "str"})
            return self._keeps_texts and keys["type"] == "str" and _SAME_TEXT.issuperset(keys)
        return kind in _PASSING and "on_error" not in schema


def _inside(schema: Schema) -> Iterator[Schema]:
    """The schemas of what a value consists of."""
    for name in ("schema", "python_schema", "values_schema", "items_schema"):
        if name in schema:
            yield schema[name]
    # That of a dataclass has the names of its fields besides their schemas.
    for name in ("choices",) if schema["type"] == "dataclass" else ("fields", "choices"):
        parts = schema.get(name, ())
        for each in parts.values() if isinstance(parts, Mapping) else parts:
            yield each[0] if isinstance(each, tuple) else each


def _mappings(schema: Any) -> Iterator[Schema]:
    """Every mapping in a core schema."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from _mappings(each)


def has_stored_form(value: Any, stored: Mapping[str, Any] | None, *, typed_dicts: bool) -> bool:
    """Return whether a value has the form of the attribute that it was read from; None if there was none.

    An object may have been stored with more members than it declares, and a mapping if it may be one of `typed_dicts`.
    """
    if isinstance(value, RootModel):
        return has_stored_form(value.root, stored, typed_dicts=typed_dicts)
    found: Mapping[str, Any] = stored or {}
    if isinstance(value, list | tuple):
        pairs = zip(value, found.get("L", ()), strict=False)
        return all(has_stored_form(*pair, typed_dicts=typed_dicts) for pair in pairs)
    if not isinstance(value, BaseModel | Mapping) and not is_dataclass(value):
        return True
    if "M" not in found:
        return False
    members = _members(value, found["M"])
    if isinstance(value, Mapping) and not typed_dicts and len(members) < len(found["M"]):
        return False
    return all(
        name in found["M"] and has_stored_form(each, found["M"][name], typed_dicts=typed_dicts)
        for name, each in members.items()
    )


def _members(value: Any, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The members of an object besides defaults that are not stored."""
    if isinstance(value, BaseModel):
        return {name: each for name, each in value.__dict__.items() if name in value.model_fields_set}
    if isinstance(value, Mapping):
        return value
    every = {each.name: (each.default, each.default_factory) == _NOT_SET for each in fields(value)}
    return {name: getattr(value, name) for name, required in every.items() if required or name in stored}
