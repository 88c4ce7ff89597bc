"""Receipts of changes of counters: which idempotency keys have changed one, and what their requests said."""

from datetime import datetime

from dynashard.entity import Entity, Key


class Receipt(Entity, name="counter.v1.Receipt", key=Key(partition="{tenant_id}:{id}"), expires="expires_at"):
    """The receipt of a change. It is created in the change's own transaction, so a change has one or has none."""

    tenant_id: str
    id: str
    """The digest of the counter's entity and of the idempotency key."""
    request: str
    """The digest of the request."""
    subject: str | None = None
    """The digest of the subject who may repeat the request; None if every caller of the tenant may."""
    expires_at: datetime | None = None
