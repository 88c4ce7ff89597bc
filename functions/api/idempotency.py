"""`Idempotency-Key` on creates."""

from dynashard.hosting.idempotency import IdempotentCreates

__all__ = ["IdempotentCreates"]
