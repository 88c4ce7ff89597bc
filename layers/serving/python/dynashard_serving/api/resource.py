"""A REST resource: an entity under a path, as its routes and its documentation need it."""

from collections.abc import Mapping
from typing import Any, Final

from dynashard.errors import NotFoundError, ValidationFailedError
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.documents import Document
from dynashard_serving.operations.served import Served

PREFIX: Final = "/v1"
COUNTS: Final = "count"
BATCHES: Final = "batch"


class Resource:
    """An entity under a path.

    Args:
        served: the entity, as all interfaces serve it.

    Attributes:
        root: the path of all items.
        template: the path of an item, as documentation writes it.
        counts: the path of their number.
        batches: the path of batches.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.exposed = served.exposed
        self.root = f"{PREFIX}/{served.exposed.path}"
        self.counts = f"{self.root}/{COUNTS}"
        self.batches = f"{self.root}/{BATCHES}"
        self.template = "/".join([self.root, *(f"{{{name}}}" for name in served.address)])

    def key_of(self, incoming: ApiRequest) -> Document:
        """Return the key that a path and a token address. A path that addresses no item is refused (404)."""
        address = self.served.address
        values = path_values(incoming.path, f"{self.root}/", len(address))
        if values is None:
            raise NotFoundError(f"{incoming.path} is not the address of an item: {self.template}")
        given = dict(zip(address, values, strict=True))
        try:
            return self.served.read_key(given, incoming.tenant)
        except ValidationFailedError as error:
            name = error.errors[0].field.removeprefix("key.")
            raise NotFoundError(f"No item has the {name} {given[name]!r}.") from error

    def location(self, document: Mapping[str, Any]) -> str:
        """Return the path of a document's item."""
        return f"{PREFIX}/{self.served.item_name(document)}"
