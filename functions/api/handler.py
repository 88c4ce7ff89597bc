"""The API: events of API Gateway."""

from dynashard_serving.api.handler import handler

__all__ = ["handler"]
