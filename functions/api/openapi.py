"""The OpenAPI 3.1 document of the resources."""

from collections.abc import Sequence
from typing import Any, Final

from functions.api import VERSION, problems
from functions.api.bodies import JSON, MERGE_PATCH
from functions.api.parameters import DEFAULT_LIMIT, MAX_LIMIT
from functions.api.resource import PREFIX, Resource
from functions.api.schemas import Schema, ref, schemas_of
from functions.api.together import TogetherResource

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
_TEXT: Final[Schema] = {"type": "string"}
_SEVERAL: Final[Schema] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
"""A field that chooses a logical partition: given several times, it chooses several, which are listed as one."""
_ETAG: Final[Schema] = {"ETag": {"schema": {"type": "string"}, "description": "The revision, quoted."}}


def document_of(resources: Sequence[Resource], togethers: Sequence[TogetherResource] = ()) -> dict[str, Any]:
    """The document as a JSON object."""
    paths: dict[str, Any] = {f"{PREFIX}/health": {"get": _health()}}
    for resource in resources:
        paths |= _paths(resource)
    for together in togethers:
        paths[together.root] = {"get": _list_together(together)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dynashard API", "version": VERSION, "description": _DESCRIPTION},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas_of(resources, togethers),
            "responses": {status: _problem(status) for status in _TEXTS},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _paths(resource: Resource) -> dict[str, Any]:
    of_all = {"list": ("get", _list), "create": ("post", _create)}
    of_one = {"get": ("get", _read), "put": ("put", _put), "update": ("patch", _patch), "delete": ("delete", _delete)}
    found: dict[str, Any] = {}
    for path, operations in ((resource.root, of_all), (resource.template, of_one)):
        served = {method: make(resource) for name, (method, make) in operations.items() if name in resource.operations}
        if served:
            found[path] = served
    if resource.template in found:
        parameters = [_path_parameter(resource, name) for name in resource.path_fields]
        found[resource.template] = {"parameters": parameters, **found[resource.template]}
    return found


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
        "tags": [resource.tag],
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
    operation = _operation(resource, "list", "List items", {"200": _page(f"{name}Page")}, ())
    operation["parameters"] = [*_listing_parameters(resource), *_field_parameters(resource)]
    return operation


def _page(schema: str) -> Schema:
    link = {"Link": {"schema": {"type": "string"}, "description": 'The next page, rel="next".'}}
    content = {JSON: {"schema": ref(schema)}}
    return {"description": "A page; it may be short.", "headers": link, "content": content}


def _list_together(together: TogetherResource) -> Operation:
    first = together.members[0]
    names = ", ".join(each.entity.__name__ for each in together.members)
    operation = _operation(first, "list", f"List {names} as one", {"200": _page(together.schema)}, ())
    operation["operationId"], operation["tags"] = f"list{together.schema.removesuffix('Page')}", [together.tag]
    nested = [_query(name, _TEXT, "Only this one, and what is below it.") for name in together.nested]
    several = [_query(name, _SEVERAL, "Part of the key.", required=True) for name in first.partition_fields(None)]
    operation["parameters"] = [*_page_parameters(), _CONSISTENT, *several, *nested]
    return operation


def _query(name: str, schema: Schema, text: str, *, required: bool = False) -> Schema:
    parameter: Schema = {"name": name, "in": "query", "schema": schema, "description": text}
    return {**parameter, "required": True} if required else parameter


def _page_parameters() -> list[Schema]:
    orders = {"type": "string", "enum": ["round_robin", "ordered", "shard"], "default": "round_robin"}
    limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
    return [
        _query("limit", limit, "Items a page."),
        _query("order", orders, "round_robin is the cheapest; ordered is by sort key over all shards."),
        _query("direction", {"type": "string", "enum": ["asc", "desc"], "default": "asc"}, "By sort key."),
        _query("prefix", _TEXT, "Sort keys that start with this."),
        _query("from", _TEXT, "Sort keys from this on, inclusive."),
        _query("to", _TEXT, "Sort keys before this, exclusive."),
        _query("cursor", _TEXT, "The cursor of the page before, with the same query."),
    ]


def _listing_parameters(resource: Resource) -> list[Schema]:
    fields = f"Only these fields, separated by commas: {', '.join(resource.entity.model_fields)}."
    parameters = [*_page_parameters(), _query("fields", _TEXT, fields), _CONSISTENT]
    if resource.indexes:
        wanted = "; ".join(
            f"{name} by {', '.join([*resource.partition_fields(name), *resource.sort_fields(name)])}"
            for name in resource.indexes
        )
        names = {"type": "string", "enum": list(resource.indexes)}
        parameters.append(_query("index", names, f"List by an index: {wanted}."))
    if resource.distinct:
        names = {"type": "string", "enum": list(resource.distinct)}
        parameters.append(_query("distinct", names, "Over several partitions: show each value of this field once."))
    return parameters


def _field_parameters(resource: Resource) -> list[Schema]:
    partition = resource.partition_fields(None)
    uses: dict[str, list[str]] = {name: ["part of the key"] for name in partition}
    for name in resource.sort_fields(None):
        uses.setdefault(name, []).append("how sort keys begin")
    for name in resource.filters:
        uses.setdefault(name, []).append("filters")
    several = set(partition)
    for index in resource.indexes:
        several.update(resource.partition_fields(index))
        for name in [*resource.partition_fields(index), *resource.sort_fields(index)]:
            uses.setdefault(name, []).append(f"key of {index}")
    required = set() if resource.indexes else set(partition)
    return [
        _query(
            name,
            _SEVERAL if name in several else _TEXT,
            f"Equal to this: {', '.join(how)}.",
            required=name in required,
        )
        for name, how in uses.items()
    ]


def _path_parameter(resource: Resource, name: str) -> Schema:
    description = resource.entity.model_fields[name].description or f"The item's {name}."
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": description}


if __name__ == "__main__":
    import json
    import sys

    from functions.api.resources import exposed_resources, listed_together

    sys.stdout.write(json.dumps(document_of(exposed_resources(), listed_together()), indent=2) + "\n")
