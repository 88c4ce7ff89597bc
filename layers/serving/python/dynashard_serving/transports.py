"""The transport of a function, by its settings."""

import os

from dynashard.transport import connect
from dynashard.transport.interface import Transport
from dynashard_serving.settings import TableSettings


def open_transport(settings: TableSettings) -> Transport:
    """Return the transport that `TRANSPORT` names; `close()` releases it. Cost: no request; see `connect`.

    With `TRACE_CALLS`, its calls are reported to the daemon of X-Ray that the environment names, if any.
    """
    transport = connect(
        settings.endpoint, transport=settings.transport, operation_seconds=settings.topology_operation_seconds
    )
    if not settings.trace_calls:
        return transport
    from dynashard_serving.telemetry.tracing import traced  # noqa: PLC0415 - off unless the settings say so

    return traced(transport, os.environ)
