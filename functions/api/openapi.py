"""The OpenAPI 3.1 document of the resources."""

from collections.abc import Sequence
from typing import Any, Final

from functions.api import VERSION, problems
from functions.api.bodies import JSON, MERGE_PATCH
from functions.api.listing import DEFAULT_LIMIT, MAX_LIMIT
from functions.api.resource import PREFIX, TENANT, Resource
from functions.api.schemas import Schema, ref, schemas_of

Operation = dict[str, Any]

_DESCRIPTION: Final = """\
Every request but health needs a bearer token; its tenant claim decides which items there are.
Errors are problem documents with a stable code. Single items carry an ETag for conditional requests."""
_TEXTS: Final = {
    "400": "Bad JSON, header, path, query string or cursor.",
    "401": "No verified token.",
    "403": "The token names no tenant.",
    "404": "No such item.",
    "409": "The item exists, or other requests are in the way.",
    "412": "If-Match or If-None-Match does not hold.",
    "413": "The body or the item is too large.",
    "415": "The body's media type is not understood.",
    "422": "Fields or query parameters are not accepted.",
    "429": "Throttled: come back after Retry-After.",
    "503": "The database cannot be reached: come back after Retry-After.",
}
_EVERYWHERE: Final = ("400", "401", "403", "422", "429", "503")
_ETAG: Final[Schema] = {"ETag": {"schema": {"type": "string"}, "description": "The revision, quoted."}}


def document_of(resources: Sequence[Resource]) -> dict[str, Any]:
    """The document as a JSON object."""
    paths: dict[str, Any] = {f"{PREFIX}/health": {"get": _health()}}
    for resource in resources:
        paths[resource.root] = {"get": _list(resource), "post": _create(resource)}
        paths[resource.template] = {
            "parameters": [_path_parameter(resource, name) for name in resource.path_fields],
            "get": _read(resource),
            "put": _put(resource),
            "patch": _patch(resource),
            "delete": _delete(resource),
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dynashard API", "version": VERSION, "description": _DESCRIPTION},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas_of(resources),
            "responses": {status: _problem(status) for status in _TEXTS},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _problem(status: str) -> Schema:
    answer: Schema = {
        "description": _TEXTS[status],
        "content": {problems.CONTENT_TYPE: {"schema": ref("Problem")}},
    }
    if status in {"429", "503"}:
        answer["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return answer


def _health() -> Operation:
    schema = {
        "type": "object",
        "required": ["status", "version"],
        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
    }
    answer = {"description": "The function answers.", "content": {JSON: {"schema": schema}}}
    return {"operationId": "health", "summary": "Liveness", "security": [], "responses": {"200": answer}}


def _operation(resource: Resource, verb: str, summary: str, answers: Schema, extra: Sequence[str]) -> Operation:
    name = resource.entity.__name__
    refused = {status: {"$ref": f"#/components/responses/{status}"} for status in sorted({*_EVERYWHERE, *extra})}
    return {
        "operationId": f"{verb}{name}",
        "summary": summary,
        "tags": [resource.path],
        "parameters": [],
        "responses": {**answers, **refused},
    }


def _answer(resource: Resource, text: str, *, location: bool = False) -> Schema:
    headers = dict(_ETAG)
    if location:
        headers["Location"] = {"schema": {"type": "string"}, "description": "The item's path."}
    content = {JSON: {"schema": ref(resource.entity.__name__)}}
    return {"description": text, "headers": headers, "content": content}


def _body(schema: str, *media_types: str) -> Schema:
    return {"required": True, "content": {media_type: {"schema": ref(schema)} for media_type in media_types}}


def _header(name: str, text: str) -> Schema:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": text}


_IF_MATCH: Final = _header("If-Match", "Only if the item is at one of these revisions: quoted tags, or *.")
_IF_NONE_MATCH: Final = _header("If-None-Match", "Only if the item is at none of these revisions; * for no item.")
_IDEMPOTENCY: Final = _header("Idempotency-Key", "Repeats with this key get the first answer, for 24 hours.")
_CONSISTENT: Final[Schema] = {
    "name": "consistent",
    "in": "query",
    "schema": {"type": "boolean", "default": False},
    "description": "Read what was written last, at twice the read units.",
}


def _create(resource: Resource) -> Operation:
    answers = {"201": _answer(resource, "Created.", location=True)}
    operation = _operation(resource, "create", "Create an item", answers, ("409", "413", "415"))
    operation["parameters"] = [_IDEMPOTENCY]
    operation["requestBody"] = _body(f"{resource.entity.__name__}Create", JSON)
    return operation


def _read(resource: Resource) -> Operation:
    answers = {"200": _answer(resource, "The item."), "304": {"description": "Not modified.", "headers": _ETAG}}
    operation = _operation(resource, "get", "Read an item", answers, ("404", "412"))
    operation["parameters"] = [_CONSISTENT, _IF_MATCH, _IF_NONE_MATCH]
    return operation


def _put(resource: Resource) -> Operation:
    answers = {
        "200": _answer(resource, "Replaced."),
        "201": _answer(resource, "Created.", location=True),
    }
    operation = _operation(resource, "put", "Replace or create an item", answers, ("404", "409", "412", "413", "415"))
    operation["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    operation["requestBody"] = _body(f"{resource.entity.__name__}Replace", JSON)
    return operation


def _patch(resource: Resource) -> Operation:
    answers = {"200": _answer(resource, "Changed.")}
    operation = _operation(resource, "patch", "Change an item", answers, ("404", "409", "412", "413", "415"))
    operation["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    operation["requestBody"] = _body(f"{resource.entity.__name__}Patch", MERGE_PATCH, JSON)
    return operation


def _delete(resource: Resource) -> Operation:
    answers = {"204": {"description": "Deleted."}}
    operation = _operation(resource, "delete", "Delete an item", answers, ("404", "409", "412"))
    operation["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    return operation


def _list(resource: Resource) -> Operation:
    name = resource.entity.__name__
    link = {"Link": {"schema": {"type": "string"}, "description": 'The next page, rel="next".'}}
    content = {JSON: {"schema": ref(f"{name}Page")}}
    answers = {"200": {"description": "A page; it may be short.", "headers": link, "content": content}}
    operation = _operation(resource, "list", "List items", answers, ())
    operation["parameters"] = [*_listing_parameters(resource), *_field_parameters(resource)]
    return operation


def _query(name: str, schema: Schema, text: str, *, required: bool = False) -> Schema:
    parameter: Schema = {"name": name, "in": "query", "schema": schema, "description": text}
    return {**parameter, "required": True} if required else parameter


def _listing_parameters(resource: Resource) -> list[Schema]:
    text = {"type": "string"}
    orders = {"type": "string", "enum": ["round_robin", "ordered", "shard"], "default": "round_robin"}
    limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
    parameters = [
        _query("limit", limit, "Items a page."),
        _query("order", orders, "round_robin is the cheapest; ordered is by sort key over all shards."),
        _query("direction", {"type": "string", "enum": ["asc", "desc"], "default": "asc"}, "By sort key."),
        _query("prefix", text, "Sort keys that start with this."),
        _query("from", text, "Sort keys from this on, inclusive."),
        _query("to", text, "Sort keys before this, exclusive."),
        _query("cursor", text, "The cursor of the page before, with the same query."),
        _query("fields", text, f"Only these fields, separated by commas: {', '.join(resource.entity.model_fields)}."),
        _CONSISTENT,
    ]
    if resource.indexes:
        wanted = "; ".join(f"{name} by {', '.join(resource.index_fields(name))}" for name in resource.indexes)
        names = {"type": "string", "enum": list(resource.indexes)}
        parameters.append(_query("index", names, f"List by an index: {wanted}."))
    return parameters


def _field_parameters(resource: Resource) -> list[Schema]:
    partition = [name for name in resource.definition.partition_fields if name != TENANT]
    uses: dict[str, list[str]] = {name: ["part of the key"] for name in partition}
    for name in resource.filters:
        uses.setdefault(name, []).append("filters")
    for index in resource.indexes:
        for name in resource.index_fields(index):
            uses.setdefault(name, []).append(f"key of {index}")
    required = set() if resource.indexes else set(partition)
    return [
        _query(name, {"type": "string"}, f"Equal to this: {', '.join(how)}.", required=name in required)
        for name, how in uses.items()
    ]


def _path_parameter(resource: Resource, name: str) -> Schema:
    description = resource.entity.model_fields[name].description or f"The item's {name}."
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": description}


if __name__ == "__main__":
    import json
    import sys

    from functions.api.resources import exposed_resources

    sys.stdout.write(json.dumps(document_of(exposed_resources()), indent=2) + "\n")
