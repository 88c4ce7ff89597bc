"""Routes besides the resources of entities: what a domain declares of edges, roll-ups, and reads of its own."""

from collections.abc import Iterable, Sequence

from dynashard_serving.api.extra_endpoint import ExtraEndpoint
from dynashard_serving.declare import Endpoint, Root, ServedEdges, ServedRollUps


def extra_endpoints(served: ServedEdges | ServedRollUps | Endpoint) -> Sequence[ExtraEndpoint]:
    """Return the paths of a declaration; loads only what its kind needs."""
    if isinstance(served, ServedEdges):
        from dynashard_serving.api import edge_endpoints  # noqa: PLC0415

        return edge_endpoints.endpoints_of(served)
    from dynashard_serving.api import computed  # noqa: PLC0415

    if isinstance(served, ServedRollUps):
        from dynashard_serving.roll_ups import roll_ups_endpoint  # noqa: PLC0415

        return computed.endpoints_of(roll_ups_endpoint(served))
    return computed.endpoints_of(served)


def all_extra_endpoints(served: Iterable[Root]) -> list[ExtraEndpoint]:
    """Return the paths of all declarations of these kinds."""
    kinds = ServedEdges | ServedRollUps | Endpoint
    return [endpoint for each in served if isinstance(each, kinds) for endpoint in extra_endpoints(each)]
