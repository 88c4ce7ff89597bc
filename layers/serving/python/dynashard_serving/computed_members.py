"""Computed fields of models inside an item: a document that was read has them, and a write ignores them.

What a place in a document may hold is known from pydantic's core schema of the entity. Where it may hold one of several
models, a member is computed if it is in one of them and no other declares it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from dynashard.model_schema import NESTED, OBJECTS, Schema, model_schema
from dynashard_serving.documents import Document

_LISTS: Final = frozenset({"list", "set", "frozenset", "tuple", "generator"})
_MEMBERS: Final = frozenset({"model-fields", "typed-dict", "dataclass-args"})
_FREE: Final = OBJECTS - NESTED
"""Kinds of schemas of objects whose members are not declared."""
_WITHIN: Final = ("schema", "json_schema", "lax_schema")
"""Where a schema that is around another one, as that of a validator is, holds it."""

_Definitions = Mapping[str, Schema]


def without_computed(model: type[BaseModel], document: Document) -> Document:
    """Return the document of an item without what it and the models inside of it compute."""
    parts = model_schema(model)
    found: Document = _given(document, [parts.inner], parts.definitions)
    return found


def _given(value: Any, schemas: Sequence[Schema], definitions: _Definitions) -> Any:
    """Return a value that one of these schemas describes without what is computed."""
    found = (shape for schema in schemas for shape in _shapes(schema, value, definitions))
    # Each once: where models hold one another, their number would else grow with each level.
    shapes = list({id(shape): shape for shape in found}.values())
    if isinstance(value, list):
        lists = [shape for shape in shapes if shape["type"] in _LISTS]
        inside = [[schema for shape in lists for schema in _items(shape, at)] for at in range(len(value))]
        return [_given(each, schemas, definitions) for each, schemas in zip(value, inside, strict=True)]
    if not isinstance(value, dict):
        return value
    models = [(shape, _fields(shape)) for shape in shapes if shape["type"] in _MEMBERS]
    values = [shape["values_schema"] for shape in shapes if "values_schema" in shape]
    dropped: set[str] = set()
    if not any(shape["type"] in _FREE for shape in shapes):
        dropped = {each["property_name"] for shape, _ in models for each in shape.get("computed_fields", ())}
        dropped -= {name for _, fields in models for name in fields}
    return {
        name: _given(each, [*(fields[name] for _, fields in models if name in fields), *values], definitions)
        for name, each in value.items()
        if name not in dropped
    }


def _shapes(schema: Schema, value: Any, definitions: _Definitions) -> Iterator[Schema]:
    """Yield the schemas of what a value of a schema may be, without what is around them."""
    kind = schema["type"]
    if kind == "definition-ref":
        yield from _shapes(definitions[schema["schema_ref"]], value, definitions)
    elif kind in ("union", "tagged-union"):
        for each in _choices(schema, value):
            yield from _shapes(each[0] if isinstance(each, tuple) else each, value, definitions)
    elif inner := [schema[name] for name in _WITHIN if name in schema]:
        yield from _shapes(inner[0], value, definitions)
    else:
        yield schema


def _choices(union: Schema, value: Any) -> Iterable[Any]:
    """The schemas of a union: the one that the value names, if it does."""
    choices, named = union["choices"], union.get("discriminator")
    if not isinstance(choices, Mapping):
        return choices  # type: ignore[no-any-return]
    tag = value.get(named) if isinstance(value, dict) and isinstance(named, str) else None
    return [choices[tag]] if isinstance(tag, str) and tag in choices else choices.values()


def _items(shape: Schema, at: int) -> Sequence[Schema]:
    """The schemas of what may be at a place of a list."""
    found: Sequence[Schema] = shape.get("items_schema", ())
    if isinstance(found, Mapping):
        return [found]
    return found[at : at + 1] if shape.get("variadic_item_index") is None else found


def _fields(shape: Schema) -> Mapping[str, Schema]:
    """The schemas of the declared members of an object."""
    fields = shape["fields"]
    return fields if isinstance(fields, Mapping) else {each["name"]: each for each in fields}
