"""The benchmark's `User` with an attachment. A module of its own, because few programs load what attachments need."""

from typing import Annotated

from pydantic import JsonValue

from dynashard import Key, Registry, Shards
from dynashard_lab.bench.stored import SHARDS
from dynashard_lab.bench.users import User
from dynashard_patterns.attachments import Attachment


class AttachedUser(
    User,
    name="user.v1.User",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(SHARDS),
    expires="expires_at",
    registry=Registry(),
):
    """A person known to a tenant, with a document that is stored out of line."""

    details: Annotated[JsonValue | None, Attachment()] = None
