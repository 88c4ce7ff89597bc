"""The sharding layer as the API uses it."""

from dynashard.hosting.backend import Backend, Open

__all__ = ["Backend", "Open"]
