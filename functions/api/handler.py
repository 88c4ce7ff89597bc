"""The API: events of API Gateway."""

from dynashard_serving.api.handler import check, handler

__all__ = ["check", "handler"]
