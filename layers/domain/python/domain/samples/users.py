"""Users of a tenant."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from domain.samples.fields import ShortText
from dynashard import Entity, Index, Key, Shards, created_at, new_id, updated_at
from dynashard_serving.declare import Access, serve

EmailAddress = Annotated[
    str,
    Field(pattern=r"^[^@\x00-\x20\x7f]+@[^@\x00-\x20\x7f]+$", max_length=254, examples=["ada@example.com"]),
]
"""Two parts without blanks or control characters. Only the mail system knows whether the address exists."""


class UserStatus(StrEnum):
    """The status of a user."""

    ACTIVE = "active"
    DISABLED = "disabled"
    DELETED = "deleted"


ACCESS: Final = Access(
    read="users:read", write="users:write", owner="{manager_id}", index="by_manager", any_owner="users:all"
)
"""Managers see and change the users whom they manage, and nobody else without the scope `users:all`."""


@serve(path="users", filters=("department", "manager_id", "status"), access=ACCESS)
class User(
    Entity,
    name="user.v1.User",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}"),
        Index("GSI2", name="by_department", partition="{tenant_id}:{department}", sort="{id}", shards=Shards(4)),
        Index("GSI3", name="by_manager", partition="{tenant_id}:{manager_id}", sort="{id}", shards=Shards(4)),
    ],
    expires="expires_at",
):
    """A user of a tenant.

    An expired user is invisible at once, and is deleted by the table's TTL later.
    """

    tenant_id: str
    id: Annotated[str, Field(examples=["ada"])] = new_id()
    email: EmailAddress
    display_name: Annotated[ShortText, Field(examples=["Ada Lovelace"])]
    manager_id: ShortText | None = None
    department: ShortText | None = None
    status: UserStatus = UserStatus.ACTIVE
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    expires_at: datetime | None = None
