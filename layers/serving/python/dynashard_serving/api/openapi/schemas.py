"""JSON Schemas of the resources, from the entities' pydantic models, and the texts that keys and URLs can carry."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from dynashard import Entity
from dynashard.entity import EntityDefinition
from dynashard_serving.api.listings import FamilyResource
from dynashard_serving.api.openapi.components import DEFS, LOCAL, Components
from dynashard_serving.api.openapi.many import schemas_of_many
from dynashard_serving.api.openapi.parts import REF, Schema, nullable, page_of, ref
from dynashard_serving.documents import REVISION, TENANT
from dynashard_serving.exposure import TYPE
from dynashard_serving.operations.served import Served

_SPECIAL: Final = frozenset("\\]^-")
"""Characters that a class of a regular expression escapes."""
CONTROLS: Final = r"\x00-\x1f\x7f-\x9f"
"""Control characters, in a class of a regular expression."""
PROBLEM: Final[Schema] = {
    "type": "object",
    "description": "An error (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable; docs/errors.md lists them all."},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message", "code"],
                "properties": {
                    "field": {"type": "string"},
                    "message": {"type": "string"},
                    "code": {"type": "string"},
                },
            },
        },
        "errors_omitted": {"type": "integer", "description": "How many more fields are at fault than errors names."},
        "details": {"type": "object"},
    },
}
GATEWAY_REFUSAL: Final[Schema] = {
    "type": "object",
    "description": "A refusal of the gateway, before the function is invoked.",
    "required": ["message"],
    "properties": {"message": {"type": "string"}},
}
_KEY_TIME: Final = "Begins with the time of the item, which must not be in the future: it determines the item's shard."
_ATTACHMENT: Final = "Read with `include`. A write that omits this field leaves it unchanged; null removes it."
ACCEPTED: Final[Schema] = {
    "type": "object",
    "required": ["accepted"],
    "properties": {"accepted": {"type": "integer", "description": "How many items were accepted."}},
}
_REVISION: Final[Schema] = {"type": "string", "readOnly": True, "description": "The value of the ETag."}


class _OfStoredValues(GenerateJsonSchema):
    """Describes times of day as they are stored, without a zone, which the format `time` requires."""

    def time_schema(self, schema: Any) -> Schema:
        """Return the schema of a time of day."""
        return {**super().time_schema(schema), "format": "time-local"}


def components_of(entities: Sequence[Served], families: Sequence[FamilyResource]) -> Components:
    """Return the schemas of entities by name: for `User`, also `UserCreate`, `UserPatch`, `UserPage` and so on.

    Args:
        entities: those that are served.
        families: listings of several as one, which also list what is not served by itself.
    """
    inputs = [(served.entity, "validation") for served in entities]
    listed = {member.entity: member for family in families for member in family.members}
    listed |= {served.entity: served for served in entities}
    outputs = [(entity, "serialization") for entity in listed]
    places, generated = models_json_schema(
        [*inputs, *outputs],  # type: ignore[list-item]
        ref_template=LOCAL + "{model}",
        schema_generator=_OfStoredValues,
    )
    found: dict[str, Schema] = generated.get(DEFS, {})
    shown = {
        entity: _representation(member, found[places[entity, "serialization"]["$ref"].removeprefix(LOCAL)])
        for entity, member in listed.items()
    }
    schemas: dict[str, Schema] = {"Problem": PROBLEM, "GatewayRefusal": GATEWAY_REFUSAL}
    for served in entities:
        given = found[places[served.entity, "validation"]["$ref"].removeprefix(LOCAL)]
        schemas.update(_of_entity(served, given, shown[served.entity]))
    for family in families:
        schemas |= _of_family(family, shown)
    return Components(schemas, found)


def _of_entity(served: Served, given: Schema, shown: Schema) -> dict[str, Schema]:
    name = served.entity.__name__
    schemas = {name: shown}
    given = _settable(served, given)
    if {"list", "get"} & set(served.exposed.operations):
        schemas[f"{name}Part"] = _part(schemas[name])
    if "list" in served.exposed.operations:
        schemas[f"{name}Page"] = page_of({"anyOf": [ref(name), ref(f"{name}Part")]})
    if "create" in served.exposed.operations:
        schemas[f"{name}Create"] = given
    if "put" in served.exposed.operations:
        schemas[f"{name}Replace"] = _without(given, served.address)
    if "update" in served.exposed.operations:
        schemas[f"{name}Patch"] = _patch(_without(given, served.address))
    if served.exposed.queued:
        schemas["Accepted"] = ACCEPTED
    return schemas | schemas_of_many(served, schemas, given)


def _of_family(family: FamilyResource, shown: Mapping[type[Entity], Schema]) -> dict[str, Schema]:
    schemas, mapping = dict[str, Schema](), dict[str, str]()
    for member in family.members:
        schema = deepcopy(shown[member.entity])
        schema["properties"] = {TYPE: {"const": member.definition.name}, **schema["properties"]}
        schema["required"] = [TYPE, *schema["required"]]
        name = f"{family.schema.removesuffix('Page')}{member.entity.__name__}"
        schemas[name] = schema
        mapping[member.definition.name] = REF + name
    one_of = {
        "oneOf": [ref(name) for name in schemas],
        "discriminator": {"propertyName": TYPE, "mapping": mapping},
    }
    return {**schemas, family.schema: page_of(one_of)}


def _representation(served: Served, shown: Schema) -> Schema:
    schema = _with_attachments(served, deepcopy(shown))
    schema["properties"][REVISION] = dict(_REVISION)
    for name in served.definition.server_fields | served.exposed.stamped:
        schema["properties"][name]["readOnly"] = True
    # Every field is answered, even one with a default. Attachments are answered if they were included.
    schema["required"] = [name for name in schema["properties"] if name not in served.definition.attachments]
    return schema


def _settable(served: Served, given: Schema) -> Schema:
    """What a caller may set of an item, with what its key and its address demand of their fields."""
    schema = _with_attachments(served, _without(given, {TENANT, *served.server_fields, *served.exposed.stamped}))
    for name, field in schema["properties"].items():
        begins = _time_of(served, name)
        if begins is not None and not served.exposed.queued:
            field["description"] = _KEY_TIME
        for choice in field.get("anyOf", [field]):
            if choice.get("type") != "string" or {"format", "pattern"} & choice.keys():
                continue
            if name in served.address:
                choice.setdefault("minLength", 1)
                choice["not"] = {"enum": [".", ".."]}
            refused = refused_by_keys(served.definition, name) + refused_by_address(served, name)
            if refused or begins:
                choice["pattern"] = text_without(refused, begins or "")
    return schema


def _time_of(served: Served, name: str) -> str | None:
    """Return the pattern of the time that a field begins with, if items are placed by the time of this field."""
    form = served.definition.time
    return form.pattern.pattern if form is not None and name == served.definition.sort_fields[0] else None


def _with_attachments(served: Served, schema: Schema) -> Schema:
    for name in served.definition.attachments:
        schema["properties"][name].pop("default", None)
        schema["properties"][name]["description"] = _ATTACHMENT
    return schema


def _part(whole: Schema) -> Schema:
    """What a listing shows of an item if the request names `fields`."""
    part = {word: deepcopy(value) for word, value in whole.items() if word != "required"}
    part["properties"].pop(REVISION)
    return {**part, "minProperties": 1, "description": "An item of a listing that names `fields`."}


def _without(schema: Schema, names: Collection[str]) -> Schema:
    copy = deepcopy(schema)
    copy["properties"] = {name: value for name, value in copy["properties"].items() if name not in names}
    required = [name for name in copy.pop("required", []) if name not in names]
    return {**copy, "required": required} if required else copy


def _patch(settable: Schema) -> Schema:
    required = settable.pop("required", ())
    settable["description"] = "A JSON Merge Patch: null resets a field to its default."
    for name, value in settable["properties"].items():
        value.pop("default", None)
        if name not in required:
            settable["properties"][name] = nullable(value)
    return settable


def refused_by_keys(definition: EntityDefinition[Any], name: str) -> str:
    """Return the characters that no key can carry in a field, in the manner of a class of a regular expression.

    Key templates also refuse longer texts that end a field, which a class cannot express.
    """
    indexed = (field for index in definition.indexes.values() for field in index.partition.fields)
    refused = {":"} if name in {*definition.partition_fields, *indexed} else set()
    if name in definition.sort_fields:
        parts = [part for part in definition.sort.parts if not isinstance(part, str) and part.name == name]
        around = {text for part in parts for text in (part.after, part.before)}
        refused |= definition.sort.reserved | {text for text in around if len(text) == 1}
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in sorted(refused))


def refused_by_address(served: Served, name: str) -> str:
    """Return the characters that no URL can carry in a field of the address: see `accepting.refuse_unaddressable`."""
    if name not in served.address:
        return ""
    return ("?" if name == served.address[-1] else "?/") + CONTROLS


def text_without(refused: str, begins: str = "") -> str:
    """Return the pattern of texts that begin with another pattern, and have none of these characters."""
    return f"^{begins}[^{refused}]*$" if refused else f"^{begins}"
