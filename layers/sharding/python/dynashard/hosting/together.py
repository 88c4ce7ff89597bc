"""Entities that share their logical partitions, listed as one: what chooses a part, and what is shown."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import ConfigurationError, FieldError, ValidationFailedError
from dynashard.hosting.documents import TENANT, Document, representation
from dynashard.reads import Filter

TYPE: Final = "type"
"""What says of which entity an item is."""


class Family:
    """Entities that are listed as one.

    Args:
        name: the listing's name outside, for messages.
        entities: the entities.

    Attributes:
        models: the entities, the one with the longest key first.
        nested: the fields that choose a part of the listing: the item they are the key of, and what is below it.

    Raises:
        ConfigurationError: the entities cannot be listed as one.
    """

    def __init__(self, name: str, entities: Sequence[type[Entity]]) -> None:
        found = sorted(map(definition, entities), key=lambda each: len(each.key_fields), reverse=True)
        if len({(each.prefix, each.partition.shape()) for each in found}) != 1:
            raise ConfigurationError(f"{name} lists entities of different logical partitions as one")
        if clashing := [each.name for each in found if TYPE in each.model.model_fields]:
            raise ConfigurationError(f"{name}: {clashing[0]} has a field called {TYPE}, the entity's name there")
        self.models: list[type[Entity]] = [each.model for each in found]
        partition = {TENANT, *found[0].partition_fields}
        self._owners = {
            tuple(field for field in each.key_fields if field not in partition): each.model for each in found
        }
        deepest = next(iter(self._owners))
        self.nested = [field for depth, field in enumerate(deepest, 1) if self._has_more_below(deepest[:depth])]

    def _has_more_below(self, fields: tuple[str, ...]) -> bool:
        below = [owner for owner in self._owners if owner[: len(fields)] == fields and owner != fields]
        return fields in self._owners and bool(below)

    def owner(self, names: Sequence[str], place: str = "") -> type[Entity]:
        """The entity whose key these nested fields are, given in their order.

        Raises:
            ValidationFailedError: one that stands above them is missing; `place` stands before its name.
        """
        above = tuple(self.nested[: len(names)])
        if tuple(names) != above:
            missing = next(name for name in above if name not in names)
            raise ValidationFailedError(
                FieldError(f"{place}{missing}", f"{names[-1]} stands below it: give both.", "missing")
            )
        return self._owners[above]

    def below(self, owner: type[Entity], values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a listing of an item and all below it.

        They say how sort keys begin, and by filters that no other begins so by chance.

        Raises:
            InvalidKeyError: a value cannot stand in a key.
        """
        prefix = definition(owner).sort.render(values)
        return {"prefix": prefix, "filters": [Filter(name, "=", value) for name, value in values.items()]}


def shown_with_type(item: Entity) -> Document:
    """The document of an item among those of other entities."""
    return {TYPE: definition(type(item)).name, **representation(item, item.revision)}
