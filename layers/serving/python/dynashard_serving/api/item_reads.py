"""Reads of single items over HTTP: the request in, the item with its `ETag` out."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from dynashard_serving.api.copy_wait import CopyWait
from dynashard_serving.api.headers import conditions_of, etag
from dynashard_serving.api.parameters import Parameters
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.response import Response, fitting, json_response
from dynashard_serving.documents import REVISION, Document
from dynashard_serving.operations.item_reads import Get, ItemReads

INCLUDE: Final = "include"
"""The query parameter that names attachments."""
_PARAMETERS: Final = ("consistent", "fields")
"""The query parameters of every item."""


class ItemReadRoute:
    """The route that reads single items of a resource."""

    def __init__(self, resource: Resource, reads: ItemReads, copy_wait: CopyWait) -> None:
        self._resource = resource
        self._reads = reads
        self._copy_wait = copy_wait

    def get(self, incoming: ApiRequest) -> Response[Any]:
        """`GET`: 200, or 304 if `If-None-Match` names its revision."""
        request = get_of(self._resource, incoming)
        if "prefer" in incoming.headers and self._resource.exposed.access is not None:
            # Copies are not compared for a caller who may not read their item.
            self._reads.get(self._resource.served, request)
        applied = self._copy_wait.wait(incoming, request.key)
        found = self._reads.get(self._resource.served, request)
        if found.document is None:
            return Response(HTTPStatus.NOT_MODIFIED, body="", headers={**etag(found.revision), **applied})
        response = item_response(HTTPStatus.OK, found.document, applied, revision=found.revision)
        return fitting(response, incoming.headers) if self._resource.served.definition.attachments else response


def get_of(resource: Resource, incoming: ApiRequest) -> Get:
    """Return what a `GET` of an item asks for."""
    key, conditions = resource.key_of(incoming), conditions_of(incoming.headers)
    if not incoming.query:
        return Get(key=key, conditions=conditions, caller=incoming.caller)
    known = (*_PARAMETERS, INCLUDE) if resource.served.definition.attachments else _PARAMETERS
    given = Parameters(incoming.query, known)
    return Get(
        key=key,
        consistent=given.flag("consistent"),
        include=given.names(INCLUDE) or (),
        conditions=conditions,
        fields=given.names("fields"),
        caller=incoming.caller,
    )


def item_response(
    status: HTTPStatus, document: Document, headers: Mapping[str, str], *, revision: str | None = None
) -> Response[str]:
    """Return the response with the document of an item. Its `ETag` is the `revision`, or that of the document."""
    return json_response(document, status, {**etag(document[REVISION] if revision is None else revision), **headers})
