"""Reads that a domain computes, over HTTP: the query is the request, and the answer a document or a list."""

from collections.abc import Sequence

from pydantic import BaseModel, create_model

from dynashard_serving.api.describing import Operation, Schema, answer, operation
from dynashard_serving.api.extra_endpoint import ExtraEndpoint, Served, answered, asked, parameters_of
from dynashard_serving.api.nouns import sentence
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX
from dynashard_serving.api.responses import Response
from dynashard_serving.backend import Backend
from dynashard_serving.declare import Endpoint


def endpoints_of(endpoint: Endpoint) -> Sequence[ExtraEndpoint]:
    """Return the path of a read."""
    name = endpoint.answer.__name__

    def read(backend: Backend, incoming: ApiRequest) -> Response[str]:
        found = endpoint.read(backend.entities, incoming.tenant, asked(endpoint.request, incoming.query))
        return answered({"items": found} if endpoint.many else found)

    def documentation() -> Operation:
        text = "The items, in order." if endpoint.many else sentence(endpoint.answer)
        answers = {"200": answer(text, f"{name}List" if endpoint.many else name)}
        verb, tag = "list" if endpoint.many else "get", endpoint.tag or endpoint.path
        described = operation(f"{verb}{name}", endpoint.summary, tag, endpoint.text, answers)
        return {**described, "parameters": parameters_of(endpoint.request)}

    root = f"{PREFIX}/{endpoint.path}"
    return [ExtraEndpoint(root, {"GET": Served(read, documentation)}, lambda: _schemas(endpoint), expensive=True)]


def _schemas(endpoint: Endpoint) -> dict[str, Schema]:
    model: type[BaseModel] = endpoint.answer
    if endpoint.many:
        items: type = list[model]  # type: ignore[valid-type]
        model = create_model(f"{model.__name__}List", __doc__="The items, in order.", items=(items, ...))
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}
