"""The resources of this API: what the domain exposes."""

from collections import Counter
from collections.abc import Sequence

from domain import ENTITIES, FAMILY_LISTINGS, Exposed, FamilyListing
from dynashard.errors import ConfigurationError
from functions.api.family_listing import FamilyResource
from functions.api.resource import Resource

RESERVED = frozenset({"health", "docs", "openapi.json"})


def exposed_resources(exposed: Sequence[Exposed] = ENTITIES) -> tuple[Resource, ...]:
    """Return a resource for each exposed entity; by default those of `domain.ENTITIES`."""
    refuse_paths([one.path for one in exposed])
    return tuple(Resource(one) for one in exposed)


def family_listings(families: Sequence[FamilyListing] = FAMILY_LISTINGS) -> tuple[FamilyResource, ...]:
    """Return the listings of families; by default those of `domain.FAMILY_LISTINGS`."""
    return tuple(FamilyResource(one) for one in families)


def refuse_paths(paths: Sequence[str]) -> None:
    """Raise `ConfigurationError` for a path that is invalid or used twice."""
    for path, times in Counter(paths).items():
        if times > 1 or path in RESERVED or not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(
                f"/{path} cannot be a resource: a path is ASCII letters, digits and -, belongs to one entity, "
                f"and is none of {', '.join(sorted(RESERVED))}"
            )
