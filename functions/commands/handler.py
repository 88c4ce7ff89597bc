"""Direct invocation: operations on entities, for other services."""

from dynashard_serving.commands.handler import handler

__all__ = ["handler"]
