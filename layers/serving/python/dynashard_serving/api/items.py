"""Writes of single items over HTTP: create, put, patch, delete."""

from collections.abc import Mapping
from http import HTTPStatus

from dynashard_serving.api.conditional import HANDLING
from dynashard_serving.api.item_reads import answer_with
from dynashard_serving.api.item_requests import create_of, delete_of, put_of, update_of
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import Response
from dynashard_serving.documents import Document
from dynashard_serving.operations.items import Items


class ItemRoutes:
    """The routes that write single items of a resource."""

    def __init__(self, resource: Resource, items: Items) -> None:
        self._resource = resource
        self._items = items

    def create(self, incoming: ApiRequest) -> Response[str]:
        """`POST`: 201, or 409 if the item exists."""
        request = create_of(self._resource, incoming)
        created = self._items.create(self._resource, request)
        replayed = {"Idempotency-Replayed": "true"} if created.replayed else {}
        return self._created(created.document, {**replayed, **_applied(request.handling)})

    def put(self, incoming: ApiRequest) -> Response[str]:
        """`PUT`: 201 if it creates, 200 if it replaces."""
        request = put_of(self._resource, incoming)
        stored = self._items.put(self._resource, request)
        if stored.created:
            return self._created(stored.document, _applied(request.handling))
        return answer_with(HTTPStatus.OK, stored.document, _applied(request.handling))

    def patch(self, incoming: ApiRequest) -> Response[str]:
        """`PATCH`: 200, 404 if there is no such item."""
        request = update_of(self._resource, incoming)
        return answer_with(HTTPStatus.OK, self._items.update(self._resource, request), _applied(request.handling))

    def delete(self, incoming: ApiRequest) -> Response[str]:
        """`DELETE`: 204, 404 if there is no such item."""
        request = delete_of(self._resource, incoming)
        self._items.delete(self._resource, request)
        return Response(HTTPStatus.NO_CONTENT, body="", headers=dict(_applied(request.handling)))

    def _created(self, document: Document, headers: Mapping[str, str]) -> Response[str]:
        return answer_with(HTTPStatus.CREATED, document, {"Location": self._resource.location(document), **headers})


def _applied(handling: str | None) -> Mapping[str, str]:
    """Say that a write was done at the level that its caller preferred."""
    return {} if handling is None else {"Preference-Applied": f"{HANDLING}={handling}"}
