"""The transport of a function, by its settings."""

from dynashard.transport.interface import Transport
from dynashard_direct.selection import connect_by
from dynashard_serving.settings import TableSettings


def open_transport(settings: TableSettings) -> Transport:
    """Return the transport that `TRANSPORT` names; `close()` releases it. Cost: no request; see `connect_by`."""
    return connect_by(settings.transport, settings.endpoint, operation_seconds=settings.topology_operation_seconds)
