"""Entities that share their logical partitions, listed as one over HTTP."""

from typing import Final

from aws_lambda_powertools.event_handler import Response

from dynashard_serving.operations.exposed import Exposed, Together
from dynashard_serving.operations.families import TYPE, Family, FamilyListing
from functions.api.incoming import Incoming
from functions.api.listing import answered, by_parameter, choice_of, paging_of
from functions.api.parameters import Parameters
from functions.api.resource import PREFIX, Resource

__all__ = ["PARAMETERS", "TYPE", "TogetherResource", "TogetherRoute"]

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
        self.together = together
        self.path = together.path
        self.root = f"{PREFIX}/{together.path}"
        self.tag = together.tag or together.path
        self.schema = "".join(word.capitalize() for word in together.path.split("-")) + "Page"
        family = Family(self.root.removeprefix(PREFIX), together.entities)
        self.nested = family.nested
        self.members = [Resource(Exposed(entity, path=together.path)) for entity in family.models]


class TogetherRoute:
    """The listing.

    Args:
        resource: what to list.
        listing: reads its pages.
    """

    def __init__(self, resource: TogetherResource, listing: FamilyListing) -> None:
        self._resource = resource
        self._listing = listing

    def page(self, incoming: Incoming) -> Response[str]:
        """`GET`: a page of all, or of one item and what is below it."""
        several = self._resource.members[0].partition_fields(None)
        given = Parameters(incoming.query, [*PARAMETERS, *self._resource.nested], several)
        with by_parameter():
            choice = choice_of(incoming.tenant, given, several, self._resource.nested)
            page = self._listing.page(choice, paging_of(given))
        return answered(self._resource.root, incoming.query, page)
