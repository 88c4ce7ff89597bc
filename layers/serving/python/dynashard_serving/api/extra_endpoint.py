"""Routes besides the resources of entities: their answers and their documentation."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dynashard.errors import ValidationFailedError
from dynashard_serving.api.describing import Operation, Schema
from dynashard_serving.api.describing import query as described_query
from dynashard_serving.api.parameters import Parameters, Query
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.responses import JSON, Response
from dynashard_serving.backend import Backend
from dynashard_serving.documents import field_errors, written

M = TypeVar("M", bound=BaseModel)

Handle = Callable[[Backend, ApiRequest], Response[Any]]


@dataclass(frozen=True, slots=True)
class Served:
    """What a method does at a path."""

    handle: Handle
    documentation: Callable[[], Operation]


@dataclass(frozen=True, slots=True)
class ExtraEndpoint:
    """A path and what is served there.

    Attributes:
        template: the path as documentation writes it.
        methods: by method.
        schemas: gives the schemas that the documentation refers to.
        rule: a regular expression for the paths, if it is not one path only.
        parameters: those of the path.
        expensive: reading here costs many times what a single item costs.
    """

    template: str
    methods: Mapping[str, Served]
    schemas: Callable[[], Mapping[str, Schema]]
    rule: str = ""
    parameters: tuple[Schema, ...] = ()
    expensive: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", self.rule or re.escape(self.template))

    def documentation(self) -> dict[str, Any]:
        """The path in the OpenAPI document."""
        methods = {method.lower(): served.documentation() for method, served in self.methods.items()}
        return {"parameters": list(self.parameters), **methods} if self.parameters else methods


def asked(model: type[M], query: Query) -> M:
    """Return the query as a model of its parameters, or refuse each parameter that is not valid (422)."""
    given = Parameters(query, [field.alias or name for name, field in model.model_fields.items()])
    try:
        return model.model_validate_strings(given.once())
    except ValidationError as error:
        raise ValidationFailedError(*field_errors(error)) from error


def parameters_of(model: type[BaseModel]) -> list[Schema]:
    """The query parameters that a model describes, for the documentation."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    found = []
    for name, value in schema["properties"].items():
        shape = {key: part for key, part in value.items() if key not in {"title", "description"}}
        found.append(described_query(name, shape, value.get("description", ""), required=name in required))
    return found


def answered(
    document: Any, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """An answer with a document."""
    return Response(status, content_type=JSON, body=written(document), headers=dict(headers or {}))
