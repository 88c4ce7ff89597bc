"""Entities that share their logical partitions, listed as one over HTTP."""

from collections.abc import Callable
from typing import Any, Final

from dynashard_serving.api.listing import answered, by_parameter, choice_of, paging_of
from dynashard_serving.api.parameters import Parameters
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.responses import Response
from dynashard_serving.declare import FamilyListing
from dynashard_serving.exposure import TYPE, Exposed
from dynashard_serving.operations.families import Family

__all__ = ["PARAMETERS", "TYPE", "FamilyResource", "FamilyRoute"]

PARAMETERS: Final = ("limit", "order", "direction", "prefix", "from", "to", "cursor", "consistent", "strict")


class FamilyResource:
    """Entities under one path."""

    def __init__(self, family: FamilyListing) -> None:
        self.path = family.path
        self.root = f"{PREFIX}/{family.path}"
        self.tag = family.tag or family.path
        self.schema = "".join(word.capitalize() for word in family.path.split("-")) + "Page"
        self.family = Family(family)
        self.nested = self.family.nested
        self.members = [Resource(Exposed(entity, path=family.path)) for entity in self.family.models]


class FamilyRoute:
    """The route of a listing."""

    def __init__(self, resource: FamilyResource, collection_of: Callable[..., Any]) -> None:
        self._resource = resource
        self._collection_of = collection_of

    def page(self, incoming: ApiRequest) -> Response[str]:
        """`GET`: a page of all, or of one item and what is below it."""
        several = self._resource.members[0].partition_fields(None)
        given = Parameters(incoming.query, [*PARAMETERS, *self._resource.nested], several)
        with by_parameter():
            choice = choice_of(incoming.tenant, given, several, self._resource.nested)
            page = self._resource.family.page(self._collection_of, choice, paging_of(given))
        return answered(self._resource.root, incoming.query, page)
