"""The entities that a request can name."""

from collections.abc import Collection, Mapping
from typing import Any

from dynashard.errors import InputError
from dynashard_serving.operations.served import OperationError, Served


def find(entities: Mapping[str, Served], name: Any, systems: Collection[str] = ()) -> Served:
    """Return the entity that a request names; `systems` are other names. A refusal says what to ask for."""
    if not isinstance(name, str) or name not in entities:
        known = ", ".join(dict.fromkeys([*(one.name for one in entities.values()), *systems]))
        raise InputError(f"no entity is called {str(name)[:100]!r}; there are {known}", field="entity")
    found = entities[name]
    if not found.exposed.operations:
        raise OperationError(_not_by_itself(found, systems))
    return found


def _not_by_itself(served: Served, systems: Collection[str]) -> str:
    route = served.exposed.route
    if not route:
        return f"{served.name} is not served, only by code that uses the layer."
    # The path of REST begins with the outside name of what does serve it.
    instead = next((name for name in systems if f"{route}/".startswith(f"/v1/{name}/")), None)
    remedy = f"ask for {instead}" if instead else f"ask {route} over REST"
    return f"{served.name} is not served by itself: {remedy}."
