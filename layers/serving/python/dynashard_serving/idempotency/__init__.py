"""Creates that are done once per idempotency key, however often they are sent, by records in a table of their own."""

from dynashard_serving.idempotency.creates import IdempotentCreates
from dynashard_serving.idempotency.records import KEPT_SECONDS, MAX_KEY_LENGTH, Attempt, usable

__all__ = [
    "KEPT_SECONDS",
    "MAX_KEY_LENGTH",
    "Attempt",
    "IdempotentCreates",
    "usable",
]
