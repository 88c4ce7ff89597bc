"""The audit log of a shared file system: accesses to files."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Key, Shards, new_id
from dynashard_serving.declare import Access as Rules
from dynashard_serving.declare import serve

FilePath = Annotated[
    str, Field(pattern=r"^/[^:?\x00-\x1f\x7f-\x9f]+$", max_length=500, examples=["/shared/firetvGen2.txt"])
]
"""A path such as `/shared/firetvGen2.txt`. A colon, which separates parts of keys, is written `%3A`."""
AccessTime = Annotated[Moment, Field(default_factory=lambda: datetime.now(UTC))]

ACCESS: Final = Rules(operations={"list": "audit:read", "get": "audit:read", "create": "audit:write"})


class AccessAction(StrEnum):
    """The kind of an access to a file."""

    READ = "read"
    WRITE = "write"
    SHARE = "share"
    DELETE = "delete"


@serve(
    path="accesses",
    filters=("action", "user_id"),
    operations=("list", "create", "get"),
    address=("accessed_at", "id", "path"),
    tag="audit",
    access=ACCESS,
)
class Access(
    Entity,
    name="audit.v1.Access",
    key=Key(partition="{tenant_id}:{path}", sort="{accessed_at}#{id}"),
    shards=Shards(start=1, max=256, placement="random", read_replicas=1),
):
    """An access to a file. The rate is not known beforehand, so the shard count of a popular file grows by itself."""

    tenant_id: str
    path: FilePath
    accessed_at: AccessTime
    id: str = new_id()
    action: AccessAction
    user_id: ShortText


@serve(
    path="ordered-accesses",
    filters=("action", "user_id"),
    operations=("list", "create", "get"),
    address=("accessed_at", "id", "path"),
    tag="audit",
    access=ACCESS,
)
class OrderedAccess(
    Entity,
    name="audit.v1.OrderedAccess",
    key=Key(partition="{tenant_id}:{path}", sort="{accessed_at}#{id}"),
    shards=Shards(start=1, max=256, placement="epochs"),
):
    """An access whose time determines its shard, under a shard count that depends on that time.

    So the count of a popular file grows by itself, and a read by key is one request at any count.
    """

    tenant_id: str
    path: FilePath
    accessed_at: AccessTime
    id: str = new_id()
    action: AccessAction
    user_id: ShortText


@serve(
    path="timed-accesses",
    filters=("action", "user_id"),
    operations=("list", "create", "get"),
    address=("accessed_at", "path"),
    tag="audit",
    access=ACCESS,
)
class TimedAccess(
    Entity,
    name="audit.v1.TimedAccess",
    key=Key(partition="{tenant_id}#{path}", sort="{accessed_at}", prefix="", separator="_"),
    shards=Shards(10, placement="modulo"),
):
    """An access in the published layout of ten calculated shards. Its path and time determine the shard."""

    tenant_id: str
    path: FilePath
    accessed_at: AccessTime
    action: AccessAction
    user_id: ShortText
