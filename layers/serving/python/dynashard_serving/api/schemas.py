"""JSON Schemas of the resources, from the entities' pydantic models."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from dynashard_serving.api.describing import REF, Schema, page_of, ref
from dynashard_serving.api.extra_endpoint import ExtraEndpoint
from dynashard_serving.api.family_listing import TYPE, FamilyResource
from dynashard_serving.api.field_patterns import refused_by_address, refused_by_keys, without
from dynashard_serving.api.resource import TENANT, Resource
from dynashard_serving.documents import REVISION

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
_ATTACHMENT: Final = "Read with `include`. A write that omits this field leaves it unchanged; null removes it."
ACCEPTED: Final[Schema] = {
    "type": "object",
    "required": ["accepted"],
    "properties": {"accepted": {"type": "integer", "description": "How many items were accepted."}},
}
_REVISION: Final[Schema] = {"type": "string", "readOnly": True, "description": "The value of the ETag."}


def schemas_of(
    resources: Sequence[Resource],
    families: Sequence[FamilyResource] = (),
    extra_endpoints: Sequence[ExtraEndpoint] = (),
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
    for family in families:
        schemas[family.schema] = page_of(_any_of(family, schemas))
    for extra in extra_endpoints:
        schemas |= extra.schemas()
    schemas["Problem"] = PROBLEM
    schemas["GatewayRefusal"] = GATEWAY_REFUSAL
    # Generators of clients name a type by its title. Two components with one title lose every operation that uses them.
    return {name: {**schemas[name], "title": name} for name in sorted(schemas)}


def _of_resource(resource: Resource, given: Schema, shown: Schema) -> dict[str, Schema]:
    name = resource.entity.__name__
    schemas = {name: _representation(resource, shown)}
    given = _settable(resource, given)
    if "list" in resource.operations:
        schemas[f"{name}Part"] = _part(schemas[name])
        schemas[f"{name}Page"] = page_of({"anyOf": [ref(name), ref(f"{name}Part")]})
    if "create" in resource.operations:
        schemas[f"{name}Create"] = given
    if "put" in resource.operations:
        schemas[f"{name}Replace"] = _without(given, resource.path_fields)
    if "update" in resource.operations:
        schemas[f"{name}Patch"] = _patch(_without(given, resource.path_fields))
    if resource.queued:
        schemas["Accepted"] = ACCEPTED
    return schemas


def _any_of(family: FamilyResource, schemas: dict[str, Schema]) -> Schema:
    names = {}
    for member in family.members:
        shown = deepcopy(schemas[member.entity.__name__])
        shown["properties"] = {TYPE: {"const": member.definition.name}, **shown["properties"]}
        shown["required"] = [TYPE, *shown["required"]]
        name = f"{family.schema.removesuffix('Page')}{member.entity.__name__}"
        schemas[name] = shown
        names[member.definition.name] = name
    mapping = {entity: REF + name for entity, name in names.items()}
    return {
        "oneOf": [ref(name) for name in names.values()],
        "discriminator": {"propertyName": TYPE, "mapping": mapping},
    }


def _representation(resource: Resource, shown: Schema) -> Schema:
    schema = _with_attachments(resource, deepcopy(shown))
    schema["properties"][REVISION] = dict(_REVISION)
    for name in resource.definition.server_fields:
        schema["properties"][name]["readOnly"] = True
    # Every field is answered, even one with a default. Attachments are answered if they were included.
    schema["required"] = [name for name in schema["properties"] if name not in resource.definition.attachments]
    return schema


def _settable(resource: Resource, given: Schema) -> Schema:
    """What a caller may set of an item, with what its key and its address demand of their fields."""
    schema = _with_attachments(resource, _without(given, {TENANT, *resource.server_fields}))
    for name, field in schema["properties"].items():
        for choice in field.get("anyOf", [field]):
            if choice.get("type") != "string" or {"format", "pattern"} & choice.keys():
                continue
            if name in resource.path_fields:
                choice.setdefault("minLength", 1)
                choice["not"] = {"enum": [".", ".."]}
            refused = refused_by_keys(resource.definition, name) + refused_by_address(resource, name)
            if refused:
                choice["pattern"] = without(refused)
    return schema


def _with_attachments(resource: Resource, schema: Schema) -> Schema:
    for name in resource.definition.attachments:
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
            settable["properties"][name] = _nullable(value)
    return settable


def _nullable(schema: Mapping[str, Any]) -> Schema:
    if {"type": "null"} in schema.get("anyOf", []):
        return dict(schema)
    return {"anyOf": [dict(schema), {"type": "null"}]}
