"""The entity of the benchmark: the README's `User` with its expiry and three indexes, and three fields more.

The three are a text of some length, a short one and a number, so that an item has about 600 bytes.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from dynashard import Entity, Index, Key, Registry, Shards, created_at, new_id, updated_at
from dynashard_lab.bench.stored import SHARDS, TENANT

EmailAddress = Annotated[str, Field(pattern=r"^[^@\x00-\x20\x7f]+@[^@\x00-\x20\x7f]+$", max_length=254)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]
EXPIRY: Final = datetime(2099, 11, 20, 12, tzinfo=UTC)


class Status(StrEnum):
    """The status of a user."""

    ACTIVE = "active"
    DISABLED = "disabled"
    DELETED = "deleted"


class User(
    Entity,
    name="user.v1.User",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(SHARDS),
    indexes=[
        Index("GSI1", name="by_email", partition="{tenant_id}", sort="{email}"),
        Index("GSI2", name="by_department", partition="{tenant_id}:{department}", sort="{id}", shards=Shards(4)),
        Index("GSI3", name="by_manager", partition="{tenant_id}:{manager_id}", sort="{id}", shards=Shards(4)),
    ],
    expires="expires_at",
    registry=Registry(),
):
    """A person known to a tenant."""

    tenant_id: str
    id: str = new_id()
    email: EmailAddress
    display_name: ShortText
    manager_id: ShortText | None = None
    department: ShortText | None = None
    status: Status = Status.ACTIVE
    title: str
    phone: str
    logins: int
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    expires_at: datetime | None = None


def users_of(shards: int) -> type[User]:
    """Return the entity with so many shards and no indexes. Its items are those of `User`."""

    class Sharded(
        User,
        name="user.v1.User",
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(shards),
        expires="expires_at",
        registry=Registry(),
    ):
        """A person known to a tenant."""

    return Sharded


def user(number: int) -> User:
    """Return a user; the same for the same number."""
    name = f"user{number:06d}"
    return User(
        tenant_id=TENANT,
        id=f"2Xk{number:024d}",
        email=f"{name}@example.com",
        display_name=f"User Number {number} of the Acme Company",
        manager_id=f"2Xk{number // 10:024d}",
        department="engineering",
        status=Status.ACTIVE,
        title="Senior Engineer of Distributed Systems",
        phone=f"+41 44 {number:07d}",
        logins=number * 7,
        expires_at=EXPIRY,
    )
