"""Reads of single items over HTTP."""

from collections.abc import Mapping
from http import HTTPStatus

from dynashard_serving.api.attachments import asked_of_one, fitting
from dynashard_serving.api.conditional import conditions_of, etag
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import JSON, Response
from dynashard_serving.documents import REVISION, Document, written
from dynashard_serving.operations.item_reads import Get, ItemReads


class ItemReadRoute:
    """The route that reads single items of a resource."""

    def __init__(self, resource: Resource, items: ItemReads) -> None:
        self._resource = resource
        self._items = items

    def read(self, incoming: ApiRequest) -> Response[str]:
        """`GET`: 200, or 304 if `If-None-Match` names its revision."""
        request = get_of(self._resource, incoming)
        found = self._items.get(self._resource, request)
        if found.document is None:
            return Response(HTTPStatus.NOT_MODIFIED, headers=etag(found.revision), body="")
        answer = answer_with(HTTPStatus.OK, found.document)
        return fitting(answer, incoming.headers) if request.include else answer


def get_of(resource: Resource, incoming: ApiRequest) -> Get:
    """What a `GET` of an item asks for."""
    consistent, include = asked_of_one(resource, incoming.query)
    conditions = conditions_of(incoming.headers)
    return Get(key=resource.key_of(incoming), consistent=consistent, include=include, conditions=conditions)


def answer_with(status: HTTPStatus, document: Document, headers: Mapping[str, str] | None = None) -> Response[str]:
    """Return the answer with the document of an item, whose revision is its `ETag`."""
    every = {**etag(document[REVISION]), **(headers or {})}
    return Response(status, content_type=JSON, body=written(document), headers=every)
