"""Writes of single items over HTTP: create, put, patch, delete; the request in, the item with its `ETag` out."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.api.body import GZIP, JSON_PATCH, MERGE_PATCH, media_type_of
from dynashard_serving.api.headers import (
    HANDLING,
    MINIMAL,
    RETURN,
    conditions_of,
    etag,
    idempotency_key,
    preferred_handling,
    prefers_minimal,
)
from dynashard_serving.api.item_reads import item_response
from dynashard_serving.api.parameters import consistent_only
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.response import JSON, Response
from dynashard_serving.documents import REVISION, Document
from dynashard_serving.operations.item_writes import ItemWrites
from dynashard_serving.operations.permits import KeyAndRevision
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write

if TYPE_CHECKING:
    from dynashard_serving.api.deferred_writes import DeferredWrites


class ItemWriteRoutes:
    """The routes that write single items of a resource.

    Args:
        resource: the resource.
        writes: does what is done at once.
        deferred: accepts writes to be done later, for callers that prefer that; None if all are done at once.
    """

    def __init__(self, resource: Resource, writes: ItemWrites, deferred: "DeferredWrites | None" = None) -> None:
        self._resource = resource
        self._writes = writes
        self._deferred = deferred

    def create(self, incoming: ApiRequest) -> Response[Any]:
        """`POST`: 201, or 409 if the item exists."""
        request = create_of(incoming)
        if accepted := self._accepted(incoming, request):
            return accepted
        created = self._writes.create(self._resource.served, request)
        replayed = {"Idempotency-Replayed": "true"} if created.replayed else {}
        return self._created(incoming, request.handling, created.document, replayed)

    def put(self, incoming: ApiRequest) -> Response[Any]:
        """`PUT`: 201 if it creates, 200 if it replaces."""
        request = put_of(self._resource, incoming)
        if accepted := self._accepted(incoming, request):
            return accepted
        stored = self._writes.put(self._resource.served, request)
        if stored.created:
            return self._created(incoming, request.handling, stored.document, {})
        return _changed(incoming, request.handling, stored.document)

    def patch(self, incoming: ApiRequest) -> Response[Any]:
        """`PATCH`: 200, 404 if there is no such item."""
        request = update_of(self._resource, incoming)
        # The queue's messages have merge patches only, and a preference may be left aside (RFC 7240). The record of a
        # JSON Patch would also reveal whether it fits an item that its sender may not read.
        if isinstance(request.patch, dict) and (accepted := self._accepted(incoming, request)):
            return accepted
        return _changed(incoming, request.handling, self._writes.update(self._resource.served, request))

    def delete(self, incoming: ApiRequest) -> Response[Any]:
        """`DELETE`: 204, 404 if there is no such item."""
        request = delete_of(self._resource, incoming)
        if accepted := self._accepted(incoming, request):
            return accepted
        self._writes.delete(self._resource.served, request)
        return Response(HTTPStatus.NO_CONTENT, body="", headers=_applied(request.handling, minimal=False))

    def _accepted(self, incoming: ApiRequest, request: Write) -> Response[str] | None:
        """Accept a write to be done later if its caller prefers that: 202. Return None if it is to be done at once."""
        return None if self._deferred is None else self._deferred.accepted(incoming, request)

    def _created(
        self, incoming: ApiRequest, handling: str | None, document: Document, headers: Mapping[str, str]
    ) -> Response[str]:
        every = {"Location": self._resource.location(document), **headers}
        return _written(incoming, handling, (HTTPStatus.CREATED, HTTPStatus.CREATED), document, every)


def create_of(incoming: ApiRequest) -> Create:
    """Return what a `POST` asks for."""
    return Create(
        tenant=incoming.tenant,
        item=incoming.json_object(),
        handling=preferred_handling(incoming.headers),
        idempotency_key=idempotency_key(incoming.headers),
        seconds=incoming.seconds_left,
        caller=incoming.caller,
    )


def put_of(resource: Resource, incoming: ApiRequest) -> Put:
    """Return what a `PUT` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Put(
        tenant=incoming.tenant,
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        item=incoming.json_object(),
        handling=preferred_handling(incoming.headers),
        caller=incoming.caller,
    )


def update_of(resource: Resource, incoming: ApiRequest) -> Update:
    """Return what a `PATCH` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Update(
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        patch=_patch_in(incoming),
        handling=preferred_handling(incoming.headers),
        caller=incoming.caller,
    )


def _patch_in(incoming: ApiRequest) -> Document | list[Any]:
    """The patch in a body: a list of operations if it is a JSON Patch, else an object."""
    patch, media_type = incoming.json((MERGE_PATCH, JSON_PATCH, JSON)), media_type_of(incoming.headers)
    if isinstance(patch, list) and media_type in (JSON_PATCH, GZIP):
        return patch
    if media_type == JSON_PATCH:
        raise ValidationFailedError(FieldError("", "A JSON Patch is a list of operations.", "list_type"))
    if not isinstance(patch, dict):
        raise ValidationFailedError(FieldError("", "The body must be a JSON object.", "object_type"))
    return patch


def delete_of(resource: Resource, incoming: ApiRequest) -> Delete:
    """Return what a `DELETE` asks for."""
    consistent_only(incoming.query, allowed=False)
    return Delete(
        conditions=conditions_of(incoming.headers),
        key=resource.key_of(incoming),
        handling=preferred_handling(incoming.headers),
        caller=incoming.caller,
    )


def _changed(incoming: ApiRequest, handling: str | None, document: Document) -> Response[str]:
    return _written(incoming, handling, (HTTPStatus.OK, HTTPStatus.NO_CONTENT), document, {})


def _written(
    incoming: ApiRequest,
    handling: str | None,
    statuses: tuple[HTTPStatus, HTTPStatus],
    document: Document,
    headers: Mapping[str, str],
) -> Response[str]:
    """Return the response to a write, with the item unless its caller prefers none, or may not read it.

    `statuses` are that with the item and that without.
    """
    minimal = prefers_minimal(incoming.headers)
    every = {**headers, **_applied(handling, minimal=minimal)}
    if minimal or isinstance(document, KeyAndRevision):
        # The headers have the key and the revision.
        return Response(statuses[1], body="", headers={**etag(document[REVISION]), **every})
    return item_response(statuses[0], document, every)


def _applied(handling: str | None, *, minimal: bool) -> dict[str, str]:
    """Name the preferences that were followed: the level of a write, and what its answer leaves out."""
    followed = [] if handling is None else [f"{HANDLING}={handling}"]
    followed += [f"{RETURN}={MINIMAL}"] if minimal else []
    return {"Preference-Applied": ", ".join(followed)} if followed else {}
