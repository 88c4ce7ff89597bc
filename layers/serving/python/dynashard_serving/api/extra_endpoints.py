"""All routes besides the resources of entities."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dynashard_serving.api.extra_endpoint import ExtraEndpoint


def _of(module: str) -> "Sequence[ExtraEndpoint]":
    found: Sequence[ExtraEndpoint] = import_module(f"dynashard_serving.api.{module}").ENDPOINTS
    return found


EXTRA_ENDPOINTS: "Final[Mapping[str, Callable[[], Sequence[ExtraEndpoint]]]]" = {
    "follows": partial(_of, "follows"),
    "roll-ups": partial(_of, "plays"),
    "revenue": partial(_of, "shares"),
}
"""Routes besides the resources of entities, by the first segment of their paths below `/v1`.

Each is given by what loads its module, which only its own requests and the documentation need.
"""


def extra_endpoints() -> "list[ExtraEndpoint]":
    """Return all of them."""
    return [endpoint for make in EXTRA_ENDPOINTS.values() for endpoint in make()]
