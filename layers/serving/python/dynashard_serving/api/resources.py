"""The resources of this API: what the domain exposes."""

from collections.abc import Sequence

from domain import ENTITIES, FAMILY_LISTINGS, Exposed, FamilyListing
from dynashard_serving.api.family_listing import FamilyResource
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.resource_paths import refuse_paths


def exposed_resources(exposed: Sequence[Exposed] = ENTITIES) -> tuple[Resource, ...]:
    """Return a resource for each exposed entity; by default those of `domain.ENTITIES`."""
    refuse_paths([one.path for one in exposed])
    return tuple(Resource(one) for one in exposed)


def family_listings(families: Sequence[FamilyListing] = FAMILY_LISTINGS) -> tuple[FamilyResource, ...]:
    """Return the listings of families; by default those of `domain.FAMILY_LISTINGS`."""
    return tuple(FamilyResource(one) for one in families)
