"""The entity of the benchmark: 12 attributes, about 600 bytes, three indexes."""

from datetime import datetime

from dynashard import Entity, Index, Key, Registry, Shards, created_at, new_id, updated_at
from dynashard_lab.bench.stored import SHARDS, TENANT


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
    registry=Registry(),
):
    """A person known to a tenant."""

    tenant_id: str
    id: str = new_id()
    email: str
    display_name: str
    manager_id: str
    department: str
    status: str
    title: str
    phone: str
    logins: int
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


def users_of(shards: int) -> type[User]:
    """Return the entity with so many shards and no indexes. Its items are those of `User`."""

    class Sharded(
        User,
        name="user.v1.User",
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(shards),
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
        status="active",
        title="Senior Engineer of Distributed Systems",
        phone=f"+41 44 {number:07d}",
        logins=number * 7,
    )
