"""Users whose ids begin with their time, so that more shards hold for later ones and nothing moves."""

from enum import StrEnum

from dynashard import Entity, Key, Shards, new_id
from dynashard_serving.declare import serve


class UserStatus(StrEnum):
    """Whether a user may act."""

    ACTIVE = "active"


@serve(path="users")
class User(
    Entity,
    name="user.v1.User",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(start=1, max=64, placement="epochs"),
):
    """A person known to a tenant."""

    tenant_id: str
    id: str = new_id()
    email: str
    display_name: str
    manager_id: str | None = None
    department: str | None = None
    status: UserStatus = UserStatus.ACTIVE
