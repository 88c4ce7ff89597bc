"""JSON Schemas of the resources, from the entities' pydantic models."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from functions.api.bodies import REVISION
from functions.api.describing import REF, Schema, page_of, ref
from functions.api.resource import TENANT, Resource
from functions.api.special import Special
from functions.api.together import TYPE, TogetherResource

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
_DETACHED: Final = "Read with include; a write that leaves it out leaves it as it is, and null removes it."
ACCEPTED: Final[Schema] = {
    "type": "object",
    "required": ["accepted"],
    "properties": {"accepted": {"type": "integer", "description": "How many items were accepted."}},
}
_REVISION: Final[Schema] = {"type": "string", "readOnly": True, "description": "The value of the ETag."}


def schemas_of(
    resources: Sequence[Resource], togethers: Sequence[TogetherResource] = (), specials: Sequence[Special] = ()
) -> dict[str, Schema]:
    """All schemas of the document by name: for `User`, also `UserCreate`, `UserReplace`, `UserPatch`, `UserPage`."""
    resources = [resource for resource in resources if resource.operations]
    inputs = [(resource.entity, "validation") for resource in resources]
    outputs = [(resource.entity, "serialization") for resource in resources]
    places, generated = models_json_schema([*inputs, *outputs], ref_template=REF + "{model}")  # type: ignore[list-item]
    found: dict[str, Schema] = generated.get("$defs", {})
    taken = {place["$ref"].removeprefix(REF) for place in places.values()}
    schemas: dict[str, Schema] = {name: schema for name, schema in found.items() if name not in taken}
    for resource in resources:
        given = found[places[resource.entity, "validation"]["$ref"].removeprefix(REF)]
        shown = found[places[resource.entity, "serialization"]["$ref"].removeprefix(REF)]
        schemas.update(_of_resource(resource, given, shown))
    for together in togethers:
        schemas[together.schema] = page_of(_any_of(together, schemas))
    for special in specials:
        schemas |= special.schemas()
    schemas["Problem"] = PROBLEM
    return dict(sorted(schemas.items()))


def _of_resource(resource: Resource, given: Schema, shown: Schema) -> dict[str, Schema]:
    name = resource.entity.__name__
    addressed = (TENANT, *resource.path_fields)
    schemas = {name: _representation(resource, shown)}
    if "list" in resource.operations:
        schemas[f"{name}Page"] = page_of(ref(name))
    if "create" in resource.operations:
        schemas[f"{name}Create"] = _without(given, resource.server_fields, optional=[TENANT])
    if "put" in resource.operations:
        schemas[f"{name}Replace"] = _with_read_only(resource, _without(given, (), optional=addressed))
    if "update" in resource.operations:
        schemas[f"{name}Patch"] = _patch(resource, given)
    if resource.queued:
        schemas["Accepted"] = ACCEPTED
    return schemas


def _any_of(together: TogetherResource, schemas: dict[str, Schema]) -> Schema:
    names = {}
    for member in together.members:
        shown = deepcopy(schemas[member.entity.__name__])
        shown["properties"] = {TYPE: {"const": member.definition.name}, **shown["properties"]}
        shown["required"] = [TYPE, *shown["required"]]
        name = f"{together.schema.removesuffix('Page')}{member.entity.__name__}"
        schemas[name] = shown
        names[member.definition.name] = name
    mapping = {entity: REF + name for entity, name in names.items()}
    return {
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {"propertyName": TYPE, "mapping": mapping},
    }


def _representation(resource: Resource, shown: Schema) -> Schema:
    schema = _with_read_only(resource, deepcopy(shown))
    # Every field is answered, also one with a default; those beside the item are, if they are asked for.
    schema["required"] = [name for name in schema["properties"] if name not in resource.definition.detached]
    return schema


def _with_read_only(resource: Resource, schema: Schema) -> Schema:
    schema["properties"][REVISION] = dict(_REVISION)
    for name in resource.definition.detached:
        schema["properties"][name].pop("default", None)
        schema["properties"][name]["description"] = _DETACHED
    for name in resource.definition.server_fields:
        schema["properties"][name]["readOnly"] = True
    return schema


def _without(schema: Schema, names: Collection[str], *, optional: Collection[str]) -> Schema:
    copy = deepcopy(schema)
    copy["properties"] = {name: value for name, value in copy["properties"].items() if name not in names}
    required = [name for name in copy.get("required", []) if name not in names and name not in optional]
    copy.pop("required", None)
    if required:
        copy["required"] = required
    return copy


def _patch(resource: Resource, given: Schema) -> Schema:
    schema = _with_read_only(resource, _without(given, (), optional=resource.entity.model_fields))
    schema["description"] = "A JSON Merge Patch: null resets a field to its default."
    for name, value in schema["properties"].items():
        value.pop("default", None)
        if name not in resource.server_fields:
            schema["properties"][name] = _nullable(value)
    return schema


def _nullable(schema: Mapping[str, Any]) -> Schema:
    if {"type": "null"} in schema.get("anyOf", []):
        return dict(schema)
    return {"anyOf": [dict(schema), {"type": "null"}]}
