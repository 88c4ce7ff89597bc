"""The stream consumer: batches of the table's stream."""

from dynashard_serving.changes.handler import handler

__all__ = ["handler"]
