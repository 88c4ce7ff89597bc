"""Entities that share their logical partitions, listed as one over HTTP."""

from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from domain import Exposed, Together
from dynashard import Entity, Filter, definition
from dynashard.errors import ConfigurationError
from functions.api.bodies import Document, representation
from functions.api.incoming import Incoming
from functions.api.listing import Options, PageOf, answered, parsed, partitions_of
from functions.api.parameters import Parameters
from functions.api.problems import FieldError, invalid_fields
from functions.api.resource import PREFIX, Resource

TYPE: Final = "type"
"""What says of which entity an item is."""
PARAMETERS: Final = ("limit", "order", "direction", "prefix", "from", "to", "cursor", "consistent")


class TogetherResource:
    """Entities under one path.

    Args:
        together: the entities and the path.

    Attributes:
        members: the entities as resources, the one with the longest key first.
        nested: the fields that choose a part of the listing: the item they are the key of, and what is below it.

    Raises:
        ConfigurationError: the entities cannot be listed as one.
    """

    def __init__(self, together: Together) -> None:
        self.path = together.path
        self.root = f"{PREFIX}/{together.path}"
        self.tag = together.tag or together.path
        self.schema = "".join(word.capitalize() for word in together.path.split("-")) + "Page"
        found = [Resource(Exposed(entity, path=together.path)) for entity in together.entities]
        self.members = sorted(found, key=lambda each: len(each.path_fields), reverse=True)
        families = {(each.definition.prefix, each.definition.partition.shape()) for each in self.members}
        if len(families) != 1:
            raise ConfigurationError(f"/{self.path} lists entities of different logical partitions as one")
        if clashing := [each.definition.name for each in self.members if TYPE in each.entity.model_fields]:
            raise ConfigurationError(f"/{self.path}: {clashing[0]} has a field called {TYPE}, the entity's name there")
        partition = self.members[0].partition_fields(None)
        self._owners = {
            tuple(name for name in each.path_fields if name not in partition): each for each in self.members
        }
        deepest = next(iter(self._owners))
        self.nested = [name for depth, name in enumerate(deepest, 1) if self._has_more_below(deepest[:depth])]

    def _has_more_below(self, fields: tuple[str, ...]) -> bool:
        below = [owner for owner in self._owners if owner[: len(fields)] == fields and owner != fields]
        return fields in self._owners and bool(below)

    def owner(self, fields: tuple[str, ...]) -> Resource:
        """The entity whose key these nested fields are."""
        return self._owners[fields]


class TogetherListing:
    """The listing.

    Args:
        resource: what to list.
        page_of: reads a page of several entities.
    """

    def __init__(self, resource: TogetherResource, page_of: PageOf) -> None:
        self._resource = resource
        self._first = resource.members[0]
        self._models: list[type[Entity]] = [each.entity for each in resource.members]
        self._page_of = page_of

    def page(self, incoming: Incoming) -> Response[str]:
        """`GET`: a page of all, or of one item and what is below it. Cost: one Query for a page of one shard."""
        first, *others = self._models

        def read(options: Options) -> Any:
            return self._page_of(first, options, *others)

        return answered(self._resource.root, incoming.query, self._options(incoming), read, _shown)

    def _options(self, incoming: Incoming) -> Options:
        several = self._first.partition_fields(None)
        given = Parameters(incoming.query, [*PARAMETERS, *self._resource.nested], several)
        options: Options = {
            "partition": partitions_of(self._first, None, incoming.tenant, given),
            "order": given.choice("order", "round_robin"),
            "direction": given.choice("direction", "asc"),
            "limit": given.limit(),
            "cursor": given.text("cursor"),
            "prefix": given.text("prefix"),
            "start": given.text("from"),
            "end": given.text("to"),
            "consistent": given.flag("consistent"),
        }
        return {**options, **self._below(given)}

    def _below(self, given: Parameters) -> Options:
        """What chooses an item and all below it: how its sort key begins, and that no other begins so by chance."""
        names = tuple(name for name in self._resource.nested if name in given)
        if not names:
            return {}
        if names != tuple(self._resource.nested[: len(names)]):
            missing = next(name for name in self._resource.nested if name not in names)
            raise invalid_fields(FieldError(missing, f"{names[-1]} stands below it: give both.", "missing"))
        if clashing := [name for name in ("prefix", "from", "to") if name in given]:
            message = f"{names[0]} says already how sort keys begin: leave this out."
            raise invalid_fields(*(FieldError(name, message, "contradiction") for name in clashing))
        owner = self._resource.owner(names)
        values = {name: parsed(owner, name, given.text(name) or "") for name in names}
        text = owner.definition.sort.render(values)
        return {"prefix": text, "filters": [Filter(name, "=", value) for name, value in values.items()]}


def _shown(item: Entity) -> Document:
    return {TYPE: definition(type(item)).name, **representation(item, item.revision)}
