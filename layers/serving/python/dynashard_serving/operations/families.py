"""Entities that share their logical partitions, listed as one: what chooses a part, and what is shown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import ConfigurationError, FieldError, ValidationFailedError
from dynashard.reads import Filter
from dynashard_serving.documents import TENANT, Document, representation
from dynashard_serving.operations.choosing import Options, paged, partitions, ranged
from dynashard_serving.operations.exposed import Exposed, Together
from dynashard_serving.operations.requests import Choice, Paging
from dynashard_serving.operations.served import Served
from dynashard_serving.pages import Answer, page_that_fits

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


class FamilyListing:
    """Pages of entities that are listed as one. Safe to share between threads.

    Args:
        together: the entities, and the listing's name.
        collection_of: gives the items of an entity, with those of others that share its logical partitions.

    Raises:
        ConfigurationError: the entities cannot be listed as one.
    """

    def __init__(self, together: Together, collection_of: Callable[..., Any]) -> None:
        self.family = Family(together.path, together.entities)
        self.members = [Served(Exposed(model, path=together.path)) for model in self.family.models]
        self._collection_of = collection_of

    def page(self, choice: Choice, paging: Paging) -> Answer:
        """A page of all, or of one item and what is below it, which `choice.sort` names.

        Raises:
            ValidationFailedError, InvalidKeyError: with the member at fault.

        Cost: one Query for a page of one shard.
        """
        options = {
            "partition": partitions(self.members[0], choice.partition, choice.tenant, None),
            "consistent": choice.consistent,
            **paged(paging),
            **ranged(choice, self._below(choice.sort)),
        }
        return page_that_fits(self._collection_of(*self.family.models).list, options, shown_with_type)

    def _below(self, given: Mapping[str, Any]) -> Options:
        """What chooses an item and all below it: how its sort key begins, and that no other begins so by chance."""
        known = self.family.nested
        if unknown := [name for name in given if name not in known]:
            message = f"There is no such field here; there are {', '.join(known) or 'none'}."
            raise ValidationFailedError(*(FieldError(f"sort.{n}", message, "unknown_parameter") for n in unknown))
        names = [name for name in known if name in given]
        if not names:
            return {}
        owner = self.family.owner(names, "sort.")
        served = next(each for each in self.members if each.entity is owner)
        return self.family.below(owner, {name: served.value(name, given[name], f"sort.{name}") for name in names})


def shown_with_type(item: Entity) -> Document:
    """The document of an item among those of other entities."""
    return {TYPE: definition(type(item)).name, **representation(item, item.revision)}
