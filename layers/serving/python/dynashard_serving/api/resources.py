"""The resources of a domain, which its documentation describes."""

from dynashard_serving.api.family_listing import FamilyResource
from dynashard_serving.api.resource import Resource
from dynashard_serving.declare import FamilyListing
from dynashard_serving.domain import Domain


def resources_of(domain: Domain) -> tuple[Resource, ...]:
    """Return a resource for each entity that is served."""
    return tuple(Resource(one) for one in domain.entities if one.operations)


def family_resources(domain: Domain) -> tuple[FamilyResource, ...]:
    """Return the listings of families."""
    return tuple(FamilyResource(one) for one in domain.declarations.served if isinstance(one, FamilyListing))
