"""The writer: batches of the queues."""

from dynashard_serving.writer.handler import handler

__all__ = ["handler"]
