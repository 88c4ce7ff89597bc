"""The core schema of a pydantic model, taken apart: its fields, and what is around them."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from pydantic import BaseModel
from pydantic_core import SchemaValidator

Schema = Mapping[str, Any]
"""A core schema of pydantic, or a part of one."""
NESTED: Final = frozenset({"model", "typed-dict", "dataclass"})
"""Kinds of schemas of values with declared members."""
OBJECTS: Final = NESTED | {"dict", "any", "json", "function-plain", "definition-ref"}
"""Kinds of schemas of values that may be objects."""


class ModelSchema(Struct, frozen=True):
    """The core schema of a model.

    Attributes:
        outer: what is around its fields, the outermost first; the last is the model itself.
        inner: the schema of all its fields together.
        definitions: schemas that others refer to, by reference.
    """

    outer: list[Schema]
    inner: Schema
    definitions: dict[str, Schema]

    @property
    def fields(self) -> Mapping[str, Schema]:
        """The schemas of its fields by name, each with what says how it is validated."""
        found: Mapping[str, Schema] = self.inner["fields"]
        return found

    @property
    def computed(self) -> bool:
        """Whether it has computed fields."""
        return bool(self.inner.get("computed_fields"))

    @property
    def config(self) -> Any:
        """The settings with which fields are validated."""
        return self.outer[-1].get("config")

    def validator(self, schema: Schema) -> SchemaValidator:
        """Return the validator of a part of the model by itself."""
        whole: Any = schema
        if self.definitions:
            whole = {"type": "definitions", "schema": schema, "definitions": list(self.definitions.values())}
        return SchemaValidator(whole, self.config)


def model_schema(model: type[BaseModel]) -> ModelSchema:
    """Return the core schema of a model in parts."""
    schema: Any = model.__pydantic_core_schema__
    outer: list[Schema] = []
    definitions: dict[str, Schema] = {}
    while schema["type"] != "model-fields":
        if schema["type"] == "definitions":
            definitions |= {each["ref"]: each for each in schema["definitions"]}
        elif schema["type"] == "definition-ref":
            schema = definitions[schema["schema_ref"]]
            continue
        else:
            outer.append(schema)
        schema = schema["schema"]
    return ModelSchema(outer, schema, definitions)
