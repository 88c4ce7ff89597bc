"""Contact methods and notification rules of users. They are stored by user, because they are read by user only."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from dynashard import Entity, Key, Unique, created_at, new_id, updated_at
from dynashard_serving.declare import Access, FamilyListing, serve

PREFIX = "contact.v1"
"""Both entities share one logical partition for each user: a few items that are read together."""
ACCESS: Final = Access(read="contacts:read", write="contacts:write", owner="{user_id}", any_owner="contacts:all")
"""A user has the own contact methods and rules."""


class Channel(StrEnum):
    """A channel for notifications."""

    EMAIL = "email"
    SMS = "sms"
    PHONE = "phone"
    PUSH = "push"


class Severity(StrEnum):
    """The lowest severity for which a rule applies."""

    ANY = "any"
    CRITICAL = "critical"


@serve(path="contact-methods", tag="contacts", access=ACCESS)
class ContactMethod(
    Entity,
    name="contact.v1.ContactMethod",
    key=Key("{tenant_id}:{user_id}", "cm_{method_id}", prefix=PREFIX),
    unique=(Unique(("channel", "address")),),
):
    """An address at which a user is notified. A user has each address of a channel once."""

    tenant_id: str
    user_id: str
    method_id: str = new_id()
    channel: Channel
    address: Annotated[str, Field(min_length=1, max_length=500, examples=["ada@example.com"])]
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


@serve(path="notification-rules", filters=("severity",), tag="contacts", access=ACCESS)
class NotificationRule(
    Entity, name="contact.v1.NotificationRule", key=Key("{tenant_id}:{user_id}", "nr_{rule_id}", prefix=PREFIX)
):
    """A rule: use a contact method some minutes after an incident began, if the incident is severe enough."""

    tenant_id: str
    user_id: str
    rule_id: str = new_id()
    method_id: str
    severity: Severity = Severity.ANY
    after_minutes: Annotated[int, Field(ge=0, le=1440)] = 0
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


CONTACTS: Final = FamilyListing((ContactMethod, NotificationRule), path="contacts")
"""All of a user, listed as one."""
