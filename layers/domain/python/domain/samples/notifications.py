"""Notifications: the messages that users of an account were sent."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from domain.samples.contacts import Channel
from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Index, Key, Shards, created_at, new_id, updated_at
from dynashard_serving.declare import serve


@serve(path="notifications", filters=("channel",), tag="contacts")
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
