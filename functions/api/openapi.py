"""The OpenAPI 3.1 document of the resources."""

from collections.abc import Sequence
from typing import Any, Final

from domain import Operation as Record
from functions.api import VERSION
from functions.api.asynchronous import PREFERENCE
from functions.api.bodies import JSON, MERGE_PATCH
from functions.api.describing import (
    REFUSALS,
    SEVERAL,
    TEXT,
    Operation,
    Schema,
    answer,
    body,
    header,
    operation,
    page,
    page_parameters,
    problem,
    query,
    ref,
)
from functions.api.including import INCLUDE
from functions.api.later import WRITES, transacted
from functions.api.queued import MOST_ITEMS
from functions.api.resource import PREFIX, Resource
from functions.api.schemas import schemas_of
from functions.api.special import Special
from functions.api.together import TogetherResource

_DESCRIPTION: Final = """\
Every request but health needs a bearer token; its tenant claim decides which items there are.
Errors are problem documents with a stable code. Single items carry an ETag for conditional requests."""
_ETAG: Final[Schema] = {"ETag": {"schema": {"type": "string"}, "description": "The revision, quoted."}}


def document_of(
    resources: Sequence[Resource], togethers: Sequence[TogetherResource] = (), specials: Sequence[Special] = ()
) -> dict[str, Any]:
    """The document as a JSON object."""
    paths: dict[str, Any] = {f"{PREFIX}/health": {"get": _health()}}
    recorded = any(resource.entity is Record for resource in resources)
    for resource in resources:
        paths |= _paths(resource, recorded=recorded)
    for together in togethers:
        paths[together.root] = {"get": _list_together(together)}
    for special in specials:
        paths[special.template] = special.documentation()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dynashard API", "version": VERSION, "description": _DESCRIPTION},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas_of(resources, togethers, specials),
            "responses": {status: problem(status) for status in REFUSALS},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _paths(resource: Resource, *, recorded: bool) -> dict[str, Any]:
    of_all = {"list": ("get", _list), "create": ("post", _create)}
    of_one = {"get": ("get", _read), "put": ("put", _put), "update": ("patch", _patch), "delete": ("delete", _delete)}
    found: dict[str, Any] = {}
    for path, operations in ((resource.root, of_all), (resource.template, of_one)):
        served = {
            method: _accepting(resource, name, make(resource), recorded=recorded)
            for name, (method, make) in operations.items()
            if name in resource.operations
        }
        if served:
            found[path] = served
    if resource.template in found:
        parameters = [_path_parameter(resource, name) for name in resource.path_fields]
        found[resource.template] = {"parameters": parameters, **found[resource.template]}
    return found


def _accepting(resource: Resource, name: str, described: Operation, *, recorded: bool) -> Operation:
    """The operation as it is where there are queues: a write may be accepted, to be done later."""
    if resource.queued and name == "create":
        created = described["requestBody"]["content"][JSON]["schema"]
        listed = {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS, "items": created}
        described["requestBody"]["content"][JSON]["schema"] = {"anyOf": [created, listed]}
        described["responses"] = {"202": answer("All of them lie on the queue.", "Accepted"), **described["responses"]}
        described["responses"].pop("201")
        described["parameters"] = []
    elif recorded and name in WRITES and transacted(resource):
        headers = {
            "Location": {"schema": TEXT, "description": "Where to ask what came of it."},
            "Preference-Applied": {"schema": {"const": PREFERENCE}},
        }
        accepted = {**answer("Accepted: it is done soon.", Record.__name__), "headers": headers}
        described["responses"] = dict(sorted({"202": accepted, **described["responses"]}.items()))
        described["parameters"] = [*described["parameters"], _PREFER]
    return described


def _health() -> Operation:
    schema = {
        "type": "object",
        "required": ["status", "version"],
        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
    }
    alive = {"description": "The function answers.", "content": {JSON: {"schema": schema}}}
    return {"operationId": "health", "summary": "Liveness", "security": [], "responses": {"200": alive}}


def _operation(resource: Resource, verb: str, summary: str, answers: Schema, more: Sequence[str]) -> Operation:
    return operation(f"{verb}{resource.entity.__name__}", summary, resource.tag, answers, more=more)


def _answer(resource: Resource, text: str, *, location: bool = False) -> Schema:
    headers = dict(_ETAG)
    if location:
        headers["Location"] = {"schema": {"type": "string"}, "description": "The item's path."}
    content = {JSON: {"schema": ref(resource.entity.__name__)}}
    return {"description": text, "headers": headers, "content": content}


_IF_MATCH: Final = header("If-Match", "Only if the item is at one of these revisions: quoted tags, or *.")
_IF_NONE_MATCH: Final = header("If-None-Match", "Only if the item is at none of these revisions; * for no item.")
_IDEMPOTENCY: Final = header("Idempotency-Key", "Repeats with this key get the first answer, for 24 hours.")
_PREFER: Final = header("Prefer", f"{PREFERENCE}: answer 202 at once, and do it later.")
_CONSISTENT: Final[Schema] = {
    "name": "consistent",
    "in": "query",
    "schema": {"type": "boolean", "default": False},
    "description": "Read what was written last, at twice the read units.",
}


def _create(resource: Resource) -> Operation:
    answers = {"201": _answer(resource, "Created.", location=True)}
    described = _operation(resource, "create", "Create an item", answers, ("409", "413", "415"))
    described["parameters"] = [_IDEMPOTENCY]
    described["requestBody"] = body(f"{resource.entity.__name__}Create", JSON)
    return described


def _read(resource: Resource) -> Operation:
    answers = {"200": _answer(resource, "The item."), "304": {"description": "Not modified.", "headers": _ETAG}}
    refused = ("404", "406", "412") if resource.definition.detached else ("404", "412")
    described = _operation(resource, "get", "Read an item", answers, refused)
    described["parameters"] = [*_include(resource), _CONSISTENT, _IF_MATCH, _IF_NONE_MATCH]
    return described


def _include(resource: Resource) -> list[Schema]:
    names = list(resource.definition.detached)
    text = f"Fields that only come to who asks, separated by commas: {', '.join(names)}."
    return [query(INCLUDE, TEXT, text)] if names else []


def _put(resource: Resource) -> Operation:
    answers = {
        "200": _answer(resource, "Replaced."),
        "201": _answer(resource, "Created.", location=True),
    }
    described = _operation(resource, "put", "Replace or create an item", answers, ("404", "409", "412", "413", "415"))
    described["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    described["requestBody"] = body(f"{resource.entity.__name__}Replace", JSON)
    return described


def _patch(resource: Resource) -> Operation:
    answers = {"200": _answer(resource, "Changed.")}
    described = _operation(resource, "patch", "Change an item", answers, ("404", "409", "412", "413", "415"))
    described["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    described["requestBody"] = body(f"{resource.entity.__name__}Patch", MERGE_PATCH, JSON)
    return described


def _delete(resource: Resource) -> Operation:
    answers = {"204": {"description": "Deleted."}}
    described = _operation(resource, "delete", "Delete an item", answers, ("404", "409", "412"))
    described["parameters"] = [_IF_MATCH, _IF_NONE_MATCH]
    return described


def _list(resource: Resource) -> Operation:
    name = resource.entity.__name__
    described = _operation(resource, "list", "List items", {"200": page(f"{name}Page")}, ())
    described["parameters"] = [*_listing_parameters(resource), *_field_parameters(resource)]
    return described


def _list_together(together: TogetherResource) -> Operation:
    first = together.members[0]
    names = ", ".join(each.entity.__name__ for each in together.members)
    described = _operation(first, "list", f"List {names} as one", {"200": page(together.schema)}, ())
    described["operationId"], described["tags"] = f"list{together.schema.removesuffix('Page')}", [together.tag]
    nested = [query(name, TEXT, "Only this one, and what is below it.") for name in together.nested]
    several = [query(name, SEVERAL, "Part of the key.", required=True) for name in first.partition_fields(None)]
    described["parameters"] = [*page_parameters(), _CONSISTENT, *several, *nested]
    return described


def _listing_parameters(resource: Resource) -> list[Schema]:
    listed = [name for name in resource.entity.model_fields if name not in resource.definition.detached]
    fields = f"Only these fields, separated by commas: {', '.join(listed)}."
    parameters = [*page_parameters(), query("fields", TEXT, fields), _CONSISTENT]
    if resource.indexes:
        wanted = "; ".join(
            f"{name} by {', '.join([*resource.partition_fields(name), *resource.sort_fields(name)])}"
            for name in resource.indexes
        )
        names = {"type": "string", "enum": list(resource.indexes)}
        parameters.append(query("index", names, f"List by an index: {wanted}."))
    if resource.distinct:
        names = {"type": "string", "enum": list(resource.distinct)}
        parameters.append(query("distinct", names, "Over several partitions: show each value of this field once."))
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
        query(
            name,
            SEVERAL if name in several else TEXT,
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
    from functions.api.specials import SPECIALS

    document = document_of(exposed_resources(), listed_together(), SPECIALS)
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
