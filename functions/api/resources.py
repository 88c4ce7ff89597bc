"""The resources of this API: what the domain exposes."""

from collections import Counter
from collections.abc import Sequence

from domain import ENTITIES, Exposed
from dynashard.errors import ConfigurationError
from functions.api.resource import Resource

RESERVED = frozenset({"health", "docs", "openapi.json"})


def exposed_resources(exposed: Sequence[Exposed] = ENTITIES) -> tuple[Resource, ...]:
    """A resource for every exposed entity, those that `domain.ENTITIES` names unless told otherwise.

    Raises:
        ConfigurationError: one of them cannot be exposed, or its path is taken.
    """
    for path, times in Counter(one.path for one in exposed).items():
        if times > 1 or path in RESERVED or not path.replace("-", "").isalnum() or not path.isascii():
            raise ConfigurationError(
                f"/{path} cannot be a resource: a path is ASCII letters, digits and -, stands for one entity, "
                f"and is none of {', '.join(sorted(RESERVED))}"
            )
    return tuple(Resource.of(one) for one in exposed)
