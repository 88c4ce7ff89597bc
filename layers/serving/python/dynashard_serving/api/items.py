"""Writes of single items over HTTP: create, put, patch, delete."""

from collections.abc import Mapping
from http import HTTPStatus

from dynashard_serving.api.conditional import HANDLING, MINIMAL, RETURN, etag, prefers_minimal
from dynashard_serving.api.item_reads import answer_with
from dynashard_serving.api.item_requests import create_of, delete_of, put_of, update_of
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import Response
from dynashard_serving.documents import REVISION, Document
from dynashard_serving.operations.item_writes import ItemWrites


class ItemRoutes:
    """The routes that write single items of a resource."""

    def __init__(self, resource: Resource, items: ItemWrites) -> None:
        self._resource = resource
        self._items = items

    def create(self, incoming: ApiRequest) -> Response[str]:
        """`POST`: 201, or 409 if the item exists."""
        request = create_of(self._resource, incoming)
        created = self._items.create(self._resource, request)
        replayed = {"Idempotency-Replayed": "true"} if created.replayed else {}
        return self._created(incoming, request.handling, created.document, replayed)

    def put(self, incoming: ApiRequest) -> Response[str]:
        """`PUT`: 201 if it creates, 200 if it replaces."""
        request = put_of(self._resource, incoming)
        stored = self._items.put(self._resource, request)
        if stored.created:
            return self._created(incoming, request.handling, stored.document, {})
        return _changed(incoming, request.handling, stored.document)

    def patch(self, incoming: ApiRequest) -> Response[str]:
        """`PATCH`: 200, 404 if there is no such item."""
        request = update_of(self._resource, incoming)
        return _changed(incoming, request.handling, self._items.update(self._resource, request))

    def delete(self, incoming: ApiRequest) -> Response[str]:
        """`DELETE`: 204, 404 if there is no such item."""
        request = delete_of(self._resource, incoming)
        self._items.delete(self._resource, request)
        return Response(HTTPStatus.NO_CONTENT, body="", headers=_applied(request.handling, minimal=False))

    def _created(
        self, incoming: ApiRequest, handling: str | None, document: Document, headers: Mapping[str, str]
    ) -> Response[str]:
        every = {"Location": self._resource.location(document), **headers}
        return _written(incoming, handling, (HTTPStatus.CREATED, HTTPStatus.CREATED), document, every)


def _changed(incoming: ApiRequest, handling: str | None, document: Document) -> Response[str]:
    return _written(incoming, handling, (HTTPStatus.OK, HTTPStatus.NO_CONTENT), document, {})


def _written(
    incoming: ApiRequest,
    handling: str | None,
    statuses: tuple[HTTPStatus, HTTPStatus],
    document: Document,
    headers: Mapping[str, str],
) -> Response[str]:
    """Return the answer to a write, with the item unless its caller prefers none; a status for each."""
    minimal = prefers_minimal(incoming.headers)
    every = {**headers, **_applied(handling, minimal=minimal)}
    if minimal:
        return Response(statuses[1], body="", headers={**etag(document[REVISION]), **every})
    return answer_with(statuses[0], document, every)


def _applied(handling: str | None, *, minimal: bool) -> dict[str, str]:
    """Name the preferences that were followed: the level of a write, and what its answer leaves out."""
    followed = [] if handling is None else [f"{HANDLING}={handling}"]
    followed += [f"{RETURN}={MINIMAL}"] if minimal else []
    return {"Preference-Applied": ", ".join(followed)} if followed else {}
