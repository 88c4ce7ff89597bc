"""Routes that are no entity's resource: what they answer, and what their documentation says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.backend import Backend
from functions.api.describing import Operation, Schema
from functions.api.incoming import Incoming

Handle = Callable[[Backend, Incoming], Response[Any]]


@dataclass(frozen=True, slots=True)
class Served:
    """What a method does at a path.

    Attributes:
        handle: answers a request.
        documentation: the operation in the OpenAPI document.
    """

    handle: Handle
    documentation: Operation


@dataclass(frozen=True, slots=True)
class Special:
    """A path and what is served there.

    Attributes:
        template: the path as documentation writes it.
        rule: a regular expression for the paths.
        methods: by method.
        parameters: those of the path.
        schemas: gives the schemas that the documentation refers to.
    """

    template: str
    rule: str
    methods: Mapping[str, Served]
    parameters: tuple[Schema, ...] = ()
    schemas: Callable[[], Mapping[str, Schema]] = field(default=dict)

    def documentation(self) -> dict[str, Any]:
        """The path in the OpenAPI document."""
        methods = {method.lower(): served.documentation for method, served in self.methods.items()}
        return {"parameters": list(self.parameters), **methods} if self.parameters else methods
