"""Connections of tests to an engine: over the direct transport, which is the default everywhere."""

from dynashard.transport import Transport, connect


def direct_transport(endpoint: str) -> Transport:
    """Return a transport to an engine, which checks no signature; `close()` releases it."""
    return connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
