"""The entities of a domain as resources of `dynashard_client`, for programs that have both packages.

    client = Client.rest(url, token=token, resources=client_resources(declared().entities))

Items are then objects of the entities' own classes. A program without the domain derives its classes from the client's
`Item` instead.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from dynashard.entity import Entity, with_revision
from dynashard.keys import KeyTemplate
from dynashard_serving.declare import Exposed
from dynashard_serving.documents import REVISION, TENANT, Document, given_part, without
from dynashard_serving.operations.served import Served


class EntityResource:
    """An entity as a resource of the client, whose protocol `Resource` it has.

    Attributes:
        model: the entity.
        name: its name.
        path: its path below `/v1`.
        address: the key fields of an item's path, in order.
        partition: those of them that choose a logical partition.
    """

    def __init__(self, served: Served) -> None:
        self.model: type[Entity] = served.entity
        self.name = served.name
        self.path = served.exposed.path
        self.address = tuple(served.address)
        self.partition = tuple(name for name in served.definition.partition_fields if name != TENANT)
        self._entity = served.definition

    def document(self, item: Entity, /) -> Document:
        """Return what is sent of an item to store it."""
        return without(given_part(item), self._entity.server_fields)

    def item(self, document: Mapping[str, Any], /) -> Entity:
        """Return the item in an answer; raises `ValidationError` if it is none."""
        known = {name: value for name, value in document.items() if name in self.model.model_fields}
        return with_revision(self.model.model_validate_json(json.dumps(known)), document.get(REVISION))

    def part(self, document: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the values of some fields in an answer; raises as `item`."""
        return {name: self._adapters[name].validate_json(json.dumps(value)) for name, value in document.items()}

    def sort_key(self, index: str | None, /) -> KeyTemplate | None:
        """Return the sort key of an index, or of the table; None if there is no such index."""
        if index is None:
            return self._entity.sort
        return self._entity.indexes[index].sort if index in self._entity.indexes else None

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.model.model_fields.items()
        return {name: TypeAdapter[Any](field.annotation) for name, field in fields if field.annotation is not None}


def client_resources(exposed: Sequence[Exposed]) -> list[EntityResource]:
    """Return the resources of the entities that a domain serves."""
    return [EntityResource(Served(each)) for each in exposed]
