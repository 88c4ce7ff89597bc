"""Lists of objects that a decoded item has in the order and the length in which they are stored.

A validator may sort a list, or drop some of it. Where none can, the place of an object in the decoded list is its place
in the stored one, so an update can change a member of it and leave the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from dynashard.compiled.stored_form import as_read
from dynashard.model_schema import NESTED, Schema, model_schema

_WITHIN: Final = frozenset({"model-field", "typed-dict-field", "default", "nullable"})
"""What passes on what it holds as it is."""
_LISTS: Final = frozenset({"list", "tuple"})


@dataclass(frozen=True, slots=True)
class StoredLists:
    """Which lists within a value are as they are stored.

    Attributes:
        members: of an object, by the names of its members.
        values: of all values of a mapping.
        items: of the members of the value, which is such a list; None if it is not.
    """

    members: "Mapping[str, StoredLists]" = field(default_factory=dict)
    values: "StoredLists | None" = None
    items: "StoredLists | None" = None

    def of(self, name: str) -> "StoredLists":
        """Return those within a member of an object or a mapping."""
        return self.members.get(name, self.values or NONE)


NONE: Final = StoredLists()


def stored_lists(model: type[BaseModel]) -> StoredLists:
    """Return the lists of objects of a model that its items have as they are stored."""
    schema = model_schema(model)
    if not all(each["type"] == "model" and as_read(each) for each in schema.outer):
        # A validator of the whole may change every field.
        return NONE
    return StoredLists(_members(schema.fields, schema.definitions, ()))


def _members(fields: Mapping[str, Schema], definitions: Mapping[str, Schema], above: tuple[str, ...]) -> Any:
    found = {name: _within(each, definitions, above) for name, each in fields.items()}
    return {name: each for name, each in found.items() if each != NONE}


def _within(schema: Schema, definitions: Mapping[str, Schema], above: tuple[str, ...]) -> StoredLists:
    """Return the lists within a schema; `above` are the definitions that hold it, to which no list may lead back."""
    kind = schema["type"]
    if kind == "definition-ref":
        name = schema["schema_ref"]
        return NONE if name in above else _within(definitions[name], definitions, (*above, name))
    if kind in _WITHIN or (kind == "model" and as_read(schema)):
        return _within(schema["schema"], definitions, above)
    if kind in {"model-fields", "typed-dict"}:
        return StoredLists(_members(schema["fields"], definitions, above))
    if kind == "dict" and "values_schema" in schema:
        values = _within(schema["values_schema"], definitions, above)
        return NONE if values == NONE else StoredLists(values=values)
    if kind in _LISTS and _has_objects(schema, definitions):
        within = [_within(each, definitions, above) for each in _items(schema)]
        return StoredLists(items=within[0] if all(each == within[0] for each in within) else NONE)
    return NONE


def _items(schema: Schema) -> list[Schema]:
    """The schemas of what a list or a tuple holds."""
    items = schema.get("items_schema", [])
    return items if isinstance(items, list) else [items]


def _has_objects(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether a list holds nothing but objects, or lists of them."""
    items = _items(schema)
    return bool(items) and all(_is_object(each, definitions) for each in items)


def _is_object(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether a schema is of objects, or of lists of them, or None in their places.

    A validator of an object may change it, but not its place in a list.
    """
    kind = schema.get("type")
    if kind == "definition-ref":
        return _is_object(definitions[schema["schema_ref"]], definitions)
    if kind in {"function-after", "function-before", "function-wrap", "nullable"}:
        return _is_object(schema["schema"], definitions)
    if kind in {"union", "tagged-union"}:
        choices = schema["choices"]
        every = choices.values() if isinstance(choices, Mapping) else choices
        return all(_is_object(each[0] if isinstance(each, tuple) else each, definitions) for each in every)
    return _has_objects(schema, definitions) if kind in _LISTS else kind in NESTED
