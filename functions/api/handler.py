"""Entry of the API function."""

import os
import random
from functools import cache
from typing import Any

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard_serving.transports import open_transport
    from functions.api.app import App, build_app
    from functions.api.resources import exposed_resources, family_listings
    from functions.api.settings import Settings

# An entity that cannot be served ends the function when it starts, instead of failing every request.
exposed_resources()
family_listings()


@cache
def _app() -> App:
    # Environments that start from one snapshot would draw the same numbers.
    random.seed()
    settings = Settings.from_env(os.environ)
    return build_app(settings, open_transport(settings))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one API Gateway event. The API is built by the first one and kept for the process."""
    return _app().handle(event, context)
