"""The resources of this API: what the domain exposes."""

from collections import Counter
from collections.abc import Sequence

from domain import ENTITIES, FAMILY_LISTINGS, Exposed, FamilyListing
from dynashard.errors import ConfigurationError
from functions.api.family_listing import FamilyResource
from functions.api.resource import Resource

RESERVED = frozenset({"health", "docs", "openapi.json"})


def exposed_resources(exposed: Sequence[Exposed] = ENTITIES) -> tuple[Resource, ...]:
    """A resource for every exposed entity, those that `domain.ENTITIES` names by default.

    Raises:
        ConfigurationError: one of them cannot be exposed, or its path is taken.
    """
    refuse_paths([one.path for one in exposed])
    return tuple(Resource(one) for one in exposed)


def family_listings(families: Sequence[FamilyListing] = FAMILY_LISTINGS) -> tuple[FamilyResource, ...]:
    """A listing for every group of entities, those that `domain.FAMILY_LISTINGS` names by default.

    Raises:
        ConfigurationError: one of them cannot be listed so.
    """
    return tuple(FamilyResource(one) for one in families)


def refuse_paths(paths: Sequence[str]) -> None:
    """Refuse paths that cannot be, or that two things would be served at.

    Raises:
        ConfigurationError: names the path.
    """
    for path, times in Counter(paths).items():
        if times > 1 or path in RESERVED or not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(
                f"/{path} cannot be a resource: a path is ASCII letters, digits and -, belongs to one entity, "
                f"and is none of {', '.join(sorted(RESERVED))}"
            )
