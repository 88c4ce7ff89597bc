"""How a user is reached, and what for: kept under the user, for they are never needed without."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dynashard import Entity, Key, created_at, new_id, updated_at

PREFIX = "contact.v1"
"""Both share one logical partition a user: a handful of items that are read together."""


class Channel(StrEnum):
    """A way to reach somebody."""

    EMAIL = "email"
    SMS = "sms"
    PHONE = "phone"
    PUSH = "push"


class Severity(StrEnum):
    """How bad it must be."""

    ANY = "any"
    CRITICAL = "critical"


class ContactMethod(
    Entity, name="contact.v1.ContactMethod", key=Key("{tenant_id}:{user_id}", "cm_{method_id}", prefix=PREFIX)
):
    """An address of a user."""

    tenant_id: str
    user_id: str
    method_id: str = new_id()
    channel: Channel
    address: Annotated[str, Field(min_length=1, max_length=500, examples=["ada@example.com"])]
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


class NotificationRule(
    Entity, name="contact.v1.NotificationRule", key=Key("{tenant_id}:{user_id}", "nr_{rule_id}", prefix=PREFIX)
):
    """Use a contact method this long after an incident began, if it is bad enough."""

    tenant_id: str
    user_id: str
    rule_id: str = new_id()
    method_id: str
    severity: Severity = Severity.ANY
    after_minutes: Annotated[int, Field(ge=0, le=1440)] = 0
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
