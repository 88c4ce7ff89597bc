"""Reads of single items over HTTP."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from dynashard_serving.api.attachments import INCLUDE, fitting
from dynashard_serving.api.conditional import conditions_of, etag
from dynashard_serving.api.parameters import Parameters
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import JSON, Response
from dynashard_serving.documents import REVISION, Document, written
from dynashard_serving.operations.item_reads import Get, ItemReads

_PARAMETERS: Final = ("consistent", "fields")
"""The query parameters of every item."""


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
        answer = answer_with(HTTPStatus.OK, found.document, revision=found.revision)
        return fitting(answer, incoming.headers) if request.include else answer


def get_of(resource: Resource, incoming: ApiRequest) -> Get:
    """What a `GET` of an item asks for."""
    key, conditions = resource.key_of(incoming), conditions_of(incoming.headers)
    if not incoming.query:
        return Get(key=key, conditions=conditions)
    known = (*_PARAMETERS, INCLUDE) if resource.definition.attachments else _PARAMETERS
    given = Parameters(incoming.query, known)
    return Get(
        key=key,
        consistent=given.flag("consistent"),
        include=given.names(INCLUDE) or (),
        conditions=conditions,
        fields=given.names("fields"),
    )


def answer_with(
    status: HTTPStatus, document: Document, headers: Mapping[str, str] | None = None, *, revision: str | None = None
) -> Response[str]:
    """Return the answer with the document of an item. Its `ETag` is the `revision`, or that of the document."""
    every = {**etag(document[REVISION] if revision is None else revision), **(headers or {})}
    return Response(status, content_type=JSON, body=written(document), headers=every)
