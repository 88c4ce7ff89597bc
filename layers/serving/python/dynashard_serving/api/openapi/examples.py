"""Examples for the OpenAPI document that the API accepts as they are.

A field's own `examples` come first. Every other required field gets a simple value that its JSON Schema allows. A time
is the present one, because some entities accept only recent items.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dynashard_serving.api.openapi.parts import REF, Schema

_BY_TYPE: Final[Mapping[str, Any]] = {"string": "example", "boolean": True, "array": [], "null": None}


@dataclass(frozen=True, slots=True)
class Examples:
    """Makes examples by the schemas of the document, which references lead to."""

    schemas: Mapping[str, Schema]
    now: datetime

    def document(self, name: str) -> dict[str, Any]:
        """An example of the schema with this name; empty if there is no such schema."""
        return self._object(self.schemas.get(name, {}))

    def _object(self, schema: Schema) -> dict[str, Any]:
        """The required properties, and those that have examples of their own."""
        required = schema.get("required", [])
        return {
            name: self._value(part)
            for name, part in schema.get("properties", {}).items()
            if not part.get("readOnly") and (name in required or "examples" in part)
        }

    def _value(self, schema: Schema) -> Any:
        """Return a value that a schema allows."""
        if "$ref" in schema:
            return self._value(self.schemas[schema["$ref"].removeprefix(REF)])
        given = [*schema.get("examples", ()), *(schema[word] for word in ("const", "default") if word in schema)]
        given += schema.get("enum", ())
        if given:
            return given[0]
        inner = schema.get("anyOf") or schema.get("oneOf")
        return self._value(inner[0]) if inner else self._plain(schema)

    def _plain(self, schema: Schema) -> Any:
        kind = schema.get("type", "string")
        if kind in {"integer", "number"}:
            return schema.get("minimum", 1)
        if schema.get("format") == "date-time":
            return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._object(schema) if kind == "object" else _BY_TYPE[kind]
