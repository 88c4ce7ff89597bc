"""A REST resource: an entity under a path, as its routes and its documentation need it."""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.errors import NotFoundError, ValidationFailedError
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.documents import TENANT, Document
from dynashard_serving.exposure import LIST_PARAMETERS, RESERVED, Exposed
from dynashard_serving.operations.served import Served

__all__ = ["LIST_PARAMETERS", "PREFIX", "RESERVED", "TENANT", "Resource"]

PREFIX: Final = "/v1"


class Resource(Served):
    """An entity under a path.

    Args:
        exposed: the entity and its outside name.
    """

    def __init__(self, exposed: Exposed) -> None:
        super().__init__(exposed)
        self.path = exposed.path
        self.filters = exposed.filters
        self.distinct = exposed.distinct
        self.operations = exposed.operations
        self.queued = exposed.queued
        self.tag = exposed.tag or exposed.path
        self.path_fields = self.address
        self.root = f"{PREFIX}/{self.path}"
        self.template = "/".join([self.root, *(f"{{{name}}}" for name in self.path_fields)])

    def key_of(self, incoming: ApiRequest) -> Document:
        """Return the key that a path and a token address. A path that addresses no item is refused (404)."""
        values = path_values(incoming.path, f"{self.root}/", len(self.path_fields))
        if values is None:
            raise NotFoundError(f"{incoming.path} is not the address of an item: {self.template}")
        given = dict(zip(self.path_fields, values, strict=True))
        try:
            return self.read_key(given, incoming.tenant)
        except ValidationFailedError as error:
            name = error.errors[0].field.removeprefix("key.")
            raise NotFoundError(f"No item has the {name} {given[name]!r}.") from error

    def location(self, document: Mapping[str, Any]) -> str:
        """Return the path of a document's item."""
        return f"{PREFIX}/{self.item_name(document)}"
