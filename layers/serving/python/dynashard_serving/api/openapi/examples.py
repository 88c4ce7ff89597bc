"""Examples for the OpenAPI document that the API accepts as they are.

A field's own `examples` come first. Every other required field gets a simple value that its JSON Schema allows. A time
is the present one, because some entities accept only recent items. An item that the API would refuse nevertheless,
such as one with a text of an unusual pattern, is left out: give the field `examples`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dynashard.errors import InputError
from dynashard_serving.api.openapi.parts import REF, Schema
from dynashard_serving.operations.accepting import accept
from dynashard_serving.operations.requests import Create, Put
from dynashard_serving.operations.served import Served

_TENANT: Final = "abc"
_BY_TYPE: Final[Mapping[str, Any]] = {"boolean": True, "null": None}
_BY_FORMAT: Final[Mapping[str, str]] = {
    "base64url": "ZXhhbXBsZQ==",
    "binary": "ZXhhbXBsZQ==",
    "duration": "PT1H",
    "email": "ada@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "0190a5c2-7b1e-7c3d-8f4a-1b2c3d4e5f60",
}
_TEXT: Final = "example"


@dataclass(frozen=True, slots=True)
class Examples:
    """Makes examples by the schemas of the document, which references lead to."""

    schemas: Mapping[str, Schema]
    now: datetime

    def document(self, name: str) -> dict[str, Any]:
        """An example of the schema with this name; empty if there is no such schema, or only items without an end."""
        try:
            return self._object(self.schemas.get(name, {}), frozenset())
        except _EndlessError:
            return {}

    def accepted(self, served: Served, kind: str) -> dict[str, Any] | None:
        """Return an example of what a request sends, such as `Create`; None if the API would refuse it."""
        example = self.document(f"{served.entity.__name__}{kind}")
        try:
            if kind == "Create":
                accept(served, Create(tenant=_TENANT, item=example))
            elif kind == "Replace":
                # A field of the key that has a default may follow from others.
                required = [name for name in served.address if served.entity.model_fields[name].is_required()]
                key = {name: self._field(served, name) for name in required}
                accept(served, Put(tenant=_TENANT, item={**key, **example}))
        except InputError:
            return None
        return example

    def _field(self, served: Served, name: str) -> Any:
        return self._value(self.schemas[served.entity.__name__]["properties"][name], frozenset())

    def _object(self, schema: Schema, seen: frozenset[str]) -> dict[str, Any]:
        """The required properties, and those that have examples of their own."""
        required = schema.get("required", [])
        return {
            name: self._value(part, seen)
            for name, part in schema.get("properties", {}).items()
            if not part.get("readOnly") and (name in required or "examples" in part)
        }

    def _value(self, schema: Schema, seen: frozenset[str]) -> Any:
        """Return a value that a schema allows; `seen` are the models that it is within."""
        given = [*schema.get("examples", ()), *(schema[word] for word in ("const", "default") if word in schema)]
        given += schema.get("enum", ())
        if given:
            return given[0]
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(REF)
            if name in seen:
                raise _EndlessError
            return self._value(self.schemas[name], seen | {name})
        for choice in (inner := schema.get("anyOf") or schema.get("oneOf") or []):
            try:
                return self._value(choice, seen)
            except _EndlessError:
                if choice is inner[-1]:
                    raise
        return self._plain(schema, seen)

    def _plain(self, schema: Schema, seen: frozenset[str]) -> Any:
        kinds = schema.get("type", "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        if kind in {"integer", "number"}:
            return _number(schema)
        if kind == "array":
            items = [self._value(each, seen) for each in schema.get("prefixItems", ())]
            # An empty set cannot be stored.
            lacking = schema.get("minItems", 1 if schema.get("uniqueItems") else 0) - len(items)
            return items + [self._value(schema["items"], seen) for _ in range(lacking) if "items" in schema]
        if kind == "object":
            return self._object(schema, seen)
        return _BY_TYPE[kind] if kind in _BY_TYPE else self._text(schema)

    def _text(self, schema: Schema) -> str:
        moments = {"date-time": "%Y-%m-%dT%H:%M:%SZ", "date": "%Y-%m-%d", "time-local": "%H:%M:%S"}
        form = schema.get("format", "")
        if form in moments:
            return self.now.strftime(moments[form])
        text = _BY_FORMAT.get(form, _TEXT)
        return text.ljust(schema.get("minLength", 0), "e")[: schema.get("maxLength")] if form == "" else text


class _EndlessError(Exception):
    """A model requires itself."""


def _number(schema: Schema) -> Any:
    """Return a number within the bounds of a schema: the least one, else the greatest one, else 1."""
    step = schema.get("multipleOf", 1)
    if "minimum" in schema:
        return schema["minimum"] + -schema["minimum"] % step
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + step
        return least - schema["exclusiveMinimum"] % step
    if "maximum" in schema:
        return min(step, schema["maximum"] - schema["maximum"] % step)
    return min(step, schema.get("exclusiveMaximum", step + 1) - step)
