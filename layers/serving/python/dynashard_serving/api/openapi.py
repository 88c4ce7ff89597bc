"""The OpenAPI 3.1 document of the API."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from dynashard_serving.api import VERSION
from dynashard_serving.api.describing import REFUSALS, Operation, Schema, problem
from dynashard_serving.api.describing_resource import family_listing, paths_of
from dynashard_serving.api.examples import Examples
from dynashard_serving.api.extra_endpoints import all_extra_endpoints
from dynashard_serving.api.nouns import plural, sentence
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.resources import family_resources, resources_of
from dynashard_serving.api.responses import JSON
from dynashard_serving.api.schemas import schemas_of
from dynashard_serving.domain import Domain, declared
from dynashard_serving.operation_records import Operation as Record

_DESCRIPTION: Final = """\
Every request except `GET /v1/health` needs a bearer token. The tenant comes from the claims of the token, never from a
path or a body.

Errors are problem documents (RFC 9457) with a stable `code`. Single items carry an `ETag` for conditional requests.
A listing has ended when its `cursor` is null; a page may be short before that."""
_INFO: Final[Schema] = {
    "title": "Dynashard API",
    "version": VERSION,
    "description": _DESCRIPTION,
    "contact": {"name": "Dynashard maintainers"},
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_SERVICE: Final = "service"


COMMITTED_AT: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""The time of the examples in docs/openapi.json."""


def document_of(domain: Domain, *, now: datetime = COMMITTED_AT) -> dict[str, Any]:
    """The document of a domain as a JSON object, with examples of the time `now`."""
    resources, families = resources_of(domain), family_resources(domain)
    extra_endpoints = all_extra_endpoints(domain.declarations.served)
    recorded = any(resource.entity is Record for resource in resources)
    schemas = schemas_of(resources, families, extra_endpoints)
    examples = Examples(schemas, now)
    paths: dict[str, Any] = {f"{PREFIX}/health": {"get": _health()}}
    for resource in resources:
        copied = any(copies.of is resource.entity for copies in domain.declarations.copies)
        paths |= paths_of(resource, examples, recorded=recorded, copied=copied)
    for family in families:
        paths[family.root] = {"get": family_listing(family)}
    for extra in extra_endpoints:
        paths[extra.template] = extra.documentation()
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/", "description": "The API that serves this document."}],
        "security": [{"bearer": []}],
        "tags": _tags(domain, paths),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {status: problem(status) for status in REFUSALS},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of the configured issuer. Locally, `POST /local/tokens` gives one.",
                }
            },
        },
    }


def _health() -> Operation:
    schema = {
        "type": "object",
        "required": ["status", "version"],
        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
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


def _tags(domain: Domain, paths: dict[str, Any]) -> list[Schema]:
    """Each tag that an operation has, with what its entities are."""
    texts: dict[str, list[str]] = {_SERVICE: ["The API itself."]}
    for one in domain.entities:
        text = f"{plural(one.path).capitalize()}: {sentence(one.entity)}"
        texts.setdefault(one.tag or one.path, []).append(text)
    used = [tag for operation in _operations(paths) for tag in operation["tags"]]
    return [
        {"name": tag, "description": "\n\n".join(texts.get(tag, [f"{plural(tag).capitalize()}."]))}
        for tag in sorted(set(used))
    ]


def _operations(paths: dict[str, Any]) -> Iterable[Operation]:
    return (operation for methods in paths.values() for method, operation in methods.items() if method != "parameters")


if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(document_of(declared()), indent=2) + "\n")
