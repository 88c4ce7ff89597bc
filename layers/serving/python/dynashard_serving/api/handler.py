"""Entry of the API function."""

import os
import random
from functools import cache
from typing import Any

from dynashard_serving.start import uncollected

with uncollected():
    from dynashard_serving.api.app import App, build_app
    from dynashard_serving.api.settings import Settings
    from dynashard_serving.backend import open_transport
    from dynashard_serving.domain import declared

    # In a checkout, which has no index, this loads every entity: one that cannot be served ends the function here.
    declared()


@cache
def _app() -> App:
    # Environments that start from one snapshot would draw the same numbers.
    random.seed()
    with uncollected():
        settings = Settings.from_env(os.environ)
        return build_app(settings, open_transport(settings))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one API Gateway event. The API is built by the first one and kept for the process."""
    return _app().handle(event, context)
