"""The OpenAPI 3.1 document of the API."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynashard_serving.api import VERSION
from dynashard_serving.api.listings import FamilyResource
from dynashard_serving.api.openapi.declared import described, family_listing, item_reads
from dynashard_serving.api.openapi.examples import Examples
from dynashard_serving.api.openapi.many import shared_operators, within
from dynashard_serving.api.openapi.parts import REFUSALS, Operation, Schema, plural, problem, sentence
from dynashard_serving.api.openapi.resources import paths_of
from dynashard_serving.api.openapi.schemas import components_of
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import JSON
from dynashard_serving.declare import Endpoint, FamilyListing, ServedCounter, ServedEdges, ServedRollUps
from dynashard_serving.domain import Domain, declared
from dynashard_serving.limits import MAX_PARAMETERS
from dynashard_serving.operation_records import Operation as Record
from dynashard_serving.operations.served import Served

_DESCRIPTION: Final = f"""\
Every request except `GET /v1/health` needs a bearer token. The tenant comes from the claims of the token, never from a
path or a body.

Errors are problem documents (RFC 9457) with a stable `code`. Single items carry an `ETag` for conditional requests.
A listing has ended when its `cursor` is null; a page may be short before that.

A query has at most {MAX_PARAMETERS} parameters. A partition field of the listed table or index takes no operators. An
operator that reads a range of keys is for the first sort field without a value, and only in the table or the indexes
that its description names. A field with operators counts as one without a value."""
_INFO: Final[Schema] = {
    "title": "Dynashard API",
    "version": VERSION,
    "description": _DESCRIPTION,
    "contact": {"name": "Dynashard maintainers"},
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_SERVICE: Final = "service"
_VERB: Final = re.compile("[a-z]+")
_PARAMETER: Final = re.compile(r"\{[^}]*\}")
_WORDS: Final = re.compile("[A-Za-z0-9]+")


COMMITTED_AT: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""The time of the examples in docs/openapi.json."""


def document_of(domain: Domain, *, now: datetime = COMMITTED_AT) -> dict[str, Any]:
    """The document of a domain as a JSON object, with examples of the time `now`."""
    entities = [Served(one) for one in domain.entities if one.operations]
    families = [
        FamilyResource(one, domain.access_of) for one in domain.declarations.served if isinstance(one, FamilyListing)
    ]
    components = components_of(entities, families)
    about_items = {served.name: components.paths_of(item_reads(Resource(served))) for served in entities}
    kinds = ServedCounter | ServedEdges | ServedRollUps | Endpoint
    others = [
        (components.paths_of(described(one)), one.quota) for one in domain.declarations.served if isinstance(one, kinds)
    ]
    recorded = any(served.entity is Record for served in entities)
    schemas = components.schemas
    examples = Examples(schemas, now)
    paths: dict[str, Any] = {f"{PREFIX}/health": {"get": _health()}}
    for served in entities:
        copied = any(copies.of is served.entity for copies in domain.declarations.copies)
        resource = Resource(served)
        paths |= paths_of(resource, examples, recorded=recorded, copied=copied)
        for path, methods in within(served.exposed.quota, about_items[served.name]).items():
            paths[path] = {"parameters": paths[resource.template]["parameters"], **methods}
    parameters, items = shared_operators(paths), set(paths) - {path for each in about_items.values() for path in each}
    for family in families:
        paths |= within(family.quota, {family.root: {"get": family_listing(family)}})
    for each, quota in others:
        paths |= within(quota, each)
    _distinguish(paths, items)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/", "description": "The API that serves this document."}],
        "security": [{"bearer": []}],
        "tags": _tags(domain, paths),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters,
            "responses": {status: problem(status) for status in REFUSALS},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of the configured issuer. Locally, `POST /local/tokens` gives one.",
                    "x-scopes": list(domain.declarations.scopes),
                }
            },
        },
    }


def _health() -> Operation:
    schema = {
        "type": "object",
        "required": ["status", "version"],
        "properties": {
            "status": {"const": "ok"},
            "version": {"type": "string"},
            "clock_off_seconds": {
                "type": "number",
                "description": "How far the clock of the process is ahead of DynamoDB's, once it has sent a request.",
            },
        },
        "additionalProperties": False,
    }
    alive = {"description": "The function answers.", "content": {JSON: {"schema": schema}}}
    return {
        "operationId": "health",
        "summary": "Report liveness",
        "description": "Answers without a token and without reading the table.",
        "tags": [_SERVICE],
        "security": [],
        "responses": {"200": alive, "429": {"$ref": "#/components/responses/429"}},
    }


def _distinguish(paths: Mapping[str, Any], items: Collection[str]) -> None:
    """Name operations by their paths if others have the same id, as reads with one answer have.

    Operations of the paths in `items` keep theirs, because no two entities that are served have one class name.
    """
    times = Counter(operation["operationId"] for operation in _operations(paths))
    for path in paths.keys() - items:
        for operation in _operations({path: paths[path]}):
            if times[operation["operationId"]] > 1:
                verb = _VERB.match(operation["operationId"])
                words = _WORDS.findall(_PARAMETER.sub("", path.removeprefix(PREFIX)))
                operation["operationId"] = "".join([verb[0] if verb else "", *(word.capitalize() for word in words)])


def _tags(domain: Domain, paths: dict[str, Any]) -> list[Schema]:
    """Each tag that an operation has, with what its entities are."""
    texts: dict[str, list[str]] = {_SERVICE: ["The API itself."]}
    for one in domain.entities:
        text = f"{plural(one.path).capitalize()}: {sentence(one.entity)}"
        texts.setdefault(one.heading, []).append(text)
    used = [tag for operation in _operations(paths) for tag in operation["tags"]]
    return [
        {"name": tag, "description": "\n\n".join(texts.get(tag, [f"{plural(tag).capitalize()}."]))}
        for tag in sorted(set(used))
    ]


def _operations(paths: Mapping[str, Any]) -> Iterable[Operation]:
    return (operation for methods in paths.values() for method, operation in methods.items() if method != "parameters")


if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(document_of(declared()), indent=2) + "\n")
