"""Entities that share their logical partitions, listed as one over HTTP."""

from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from domain import Exposed, Together
from dynashard.hosting.together import TYPE, Family, shown_with_type
from functions.api.incoming import Incoming
from functions.api.listing import Options, PageOf, answered, parsed, partitions_of
from functions.api.parameters import Parameters
from functions.api.problems import FieldError, invalid_fields
from functions.api.resource import PREFIX, Resource

__all__ = ["PARAMETERS", "TYPE", "TogetherListing", "TogetherResource"]

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
        self.family = Family(self.root.removeprefix(PREFIX), together.entities)
        self.nested = self.family.nested
        self.members = [Resource(Exposed(entity, path=together.path)) for entity in self.family.models]


class TogetherListing:
    """The listing.

    Args:
        resource: what to list.
        page_of: reads a page of several entities.
    """

    def __init__(self, resource: TogetherResource, page_of: PageOf) -> None:
        self._resource = resource
        self._first = resource.members[0]
        self._page_of = page_of

    def page(self, incoming: Incoming) -> Response[str]:
        """`GET`: a page of all, or of one item and what is below it. Cost: one Query for a page of one shard."""
        first, *others = self._resource.family.models

        def read(options: Options) -> Any:
            return self._page_of(first, options, *others)

        return answered(self._resource.root, incoming.query, self._options(incoming), read, shown_with_type)

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
        family = self._resource.family
        owner = family.owner(names)
        if clashing := [name for name in ("prefix", "from", "to") if name in given]:
            message = f"{names[0]} says already how sort keys begin: leave this out."
            raise invalid_fields(*(FieldError(name, message, "contradiction") for name in clashing))
        resource = next(each for each in self._resource.members if each.entity is owner)
        return family.below(owner, {name: parsed(resource, name, given.text(name) or "") for name in names})
