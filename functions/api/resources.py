"""The resources of this API: what the domain exposes."""

from domain import ENTITIES
from functions.api.resource import Resource


def exposed_resources() -> tuple[Resource, ...]:
    """A resource for every entity that `domain.ENTITIES` names.

    Raises:
        ConfigurationError: one of them cannot be exposed, or two have one path.
    """
    return tuple(Resource.of(exposed) for exposed in ENTITIES)
