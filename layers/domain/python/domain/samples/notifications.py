"""Notifications: the messages that users of an account were sent."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from domain.samples.contacts import Channel
from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Index, Key, Shards, created_at, new_id, updated_at
from dynashard_serving.declare import Access, Caller, serve

ALL: Final = "notifications:all"


def _own_or_all(caller: Caller, _right: str, item: "Notification | None") -> bool:
    """Return whether an item is the caller's own, unless the caller may see those of all users."""
    return item is None or ALL in caller.scopes or item.user_id == caller.subject


@serve(
    path="notifications",
    filters=("channel",),
    tag="contacts",
    access=Access(read="notifications:read", write="notifications:write", policy=_own_or_all, policy_scopes=(ALL,)),
)
class Notification(
    Entity,
    name="notification.v1.Notification",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(start=1, max=256, placement="epochs"),
    indexes=[Index("GSI1", "by_user", partition="{tenant_id}:{user_id}", sort="{id}")],
    expires="expires_at",
):
    """A message that was sent to a user.

    An account sends few of them, and thousands in a minute when something large breaks. All of them are one list, so
    the shard count grows with that minute. The id carries the time of sending, which determines the shard.
    """

    tenant_id: str
    id: str = new_id()
    user_id: ShortText
    channel: Channel
    text: Annotated[str, Field(min_length=1, max_length=500, examples=["Error rate above 1%"])]
    read_at: Moment | None = None
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    expires_at: datetime | None = None
