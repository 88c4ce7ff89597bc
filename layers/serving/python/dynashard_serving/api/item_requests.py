"""From an HTTP request that writes a single item to the operation's own request."""

from collections.abc import Callable, Mapping
from typing import Final

from dynashard_serving.api.bodies import MERGE_PATCH, json_object
from dynashard_serving.api.conditional import conditions_of, preferred_handling
from dynashard_serving.api.parameters import consistent_only
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import JSON
from dynashard_serving.idempotency import MAX_KEY_LENGTH, usable
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write


def create_of(_: Resource, incoming: ApiRequest) -> Create:
    """What a `POST` asks for."""
    return Create(
        tenant=incoming.tenant,
        item=json_object(incoming),
        handling=preferred_handling(incoming.headers),
        idempotency_key=idempotency_key(incoming),
        seconds=incoming.seconds_left,
    )


def put_of(resource: Resource, incoming: ApiRequest) -> Put:
    """What a `PUT` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Put(
        tenant=incoming.tenant,
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        item=json_object(incoming),
        handling=preferred_handling(incoming.headers),
    )


def update_of(resource: Resource, incoming: ApiRequest) -> Update:
    """What a `PATCH` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Update(
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        patch=json_object(incoming, (MERGE_PATCH, JSON)),
        handling=preferred_handling(incoming.headers),
    )


def delete_of(resource: Resource, incoming: ApiRequest) -> Delete:
    """What a `DELETE` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Delete(
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        handling=preferred_handling(incoming.headers),
    )


REQUEST_OF: Final[Mapping[str, Callable[[Resource, ApiRequest], Write]]] = {
    "create": create_of,
    "put": put_of,
    "update": update_of,
    "delete": delete_of,
}
"""Reads a write from a request, by its operation."""


def idempotency_key(incoming: ApiRequest) -> str | None:
    """Return the header `Idempotency-Key`, or None. An unusable key is refused (400)."""
    key = incoming.headers.get("idempotency-key")
    if key is not None and not usable(key):
        raise ProblemError("malformed_header", f"Idempotency-Key is 1 to {MAX_KEY_LENGTH} printable ASCII characters.")
    return key
