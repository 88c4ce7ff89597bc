"""Records of asynchronous writes: accepted, and performed later."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from dynashard.entity import Entity, Key, Shards, created_at, new_id, updated_at
from dynashard_serving.declare import ANYONE, READS, Access, Caller, serve

ShortText = Annotated[str, Field(min_length=1, max_length=200)]


class OperationState(StrEnum):
    """The state of an asynchronous write."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


def _sent_it(caller: Caller, _right: str, record: "Operation | None") -> bool:
    """Return whether a caller may read a record: that of a write of their own, or of what has no access rules."""
    return record is None or record.subject in (None, caller.subject or "")


@serve(path="operations", filters=("state",), operations=READS, access=Access(read=ANYONE, policy=_sent_it))
class Operation(
    Entity,
    name="operation.v1.Operation",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(start=4, max=256),
    expires="expires_at",
):
    """The record of an asynchronous write and its outcome.

    `status` is the status that the same request would have got at once. `problem` is its problem document if it failed.
    `subject` is who sent the request, if what it writes has access rules. Only they may read the record.
    """

    tenant_id: str
    id: str = new_id()
    state: OperationState = OperationState.PENDING
    method: ShortText
    target: Annotated[str, Field(max_length=8192)]
    request: ShortText | None = None
    subject: str | None = None
    status: int | None = None
    problem: dict[str, JsonValue] | None = None
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    expires_at: datetime | None = None
