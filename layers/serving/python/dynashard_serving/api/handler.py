"""Entry of the API function."""

import os
import random
from functools import cache
from typing import Any

from dynashard_serving.start import uncollected

with uncollected():
    from domain import ENTITIES, FAMILY_LISTINGS
    from dynashard_serving.api.app import App, build_app
    from dynashard_serving.api.extra_endpoints import EXTRA_ENDPOINTS
    from dynashard_serving.api.resource_paths import refuse_paths
    from dynashard_serving.api.routes import paths_of
    from dynashard_serving.api.settings import Settings
    from dynashard_serving.transports import open_transport

# A path that cannot be served ends the function when it starts, instead of failing every request.
refuse_paths(paths_of(ENTITIES, FAMILY_LISTINGS, EXTRA_ENDPOINTS))


@cache
def _app() -> App:
    # Environments that start from one snapshot would draw the same numbers.
    random.seed()
    settings = Settings.from_env(os.environ)
    return build_app(settings, open_transport(settings))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one API Gateway event. The API is built by the first one and kept for the process."""
    return _app().handle(event, context)


def check() -> None:
    """Load every entity, and raise `ConfigurationError` or `DeclarationError` if one cannot be served.

    The local stack calls it when it starts. A deployed function finds out at the first request for the entity.
    """
    from dynashard_serving.api.resources import exposed_resources, family_listings  # noqa: PLC0415 - loads all models

    exposed_resources()
    family_listings()
