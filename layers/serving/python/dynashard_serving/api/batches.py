"""Batches over HTTP: many reads and writes of a resource in one request, with an outcome each."""

from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.api.headers import idempotency_key
from dynashard_serving.api.parameters import consistent_only
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.response import Response, json_response
from dynashard_serving.operations.described import described_requests
from dynashard_serving.operations.mixed_batches import REQUESTS, MixedBatch, MixedBatches, requests_in

OUTCOMES: Final = "outcomes"


class BatchRoute:
    """The route of a resource's batches."""

    def __init__(self, resource: Resource, batches: MixedBatches) -> None:
        self._resource = resource
        self._batches = batches

    def run(self, incoming: ApiRequest) -> Response[Any]:
        """`POST`: 200 with an outcome for each request."""
        served, batch = self._resource.served, batch_of(incoming)
        outcomes = self._batches.run(served, batch)
        response = json_response({OUTCOMES: outcomes}, HTTPStatus.OK)
        response.described = list(described_requests(served, batch.requests, outcomes))
        return response


def batch_of(incoming: ApiRequest) -> MixedBatch:
    """Return what a `POST` asks for, or refuse it (422)."""
    consistent_only(incoming.query, allowed=False)
    body = incoming.json_object()
    errors = [
        FieldError(name, f"A batch has {REQUESTS} only.", "unknown_parameter") for name in body if name != REQUESTS
    ]
    if errors:
        raise ValidationFailedError(*errors)
    key = idempotency_key(incoming.headers)
    return MixedBatch(incoming.tenant, requests_in(body), key, incoming.seconds_left, incoming.caller)
