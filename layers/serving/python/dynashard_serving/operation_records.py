"""Records of asynchronous writes: accepted, and performed later."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from dynashard.entity import Entity, Key, Shards, created_at, new_id, updated_at
from dynashard_serving.declare import READS, serve

ShortText = Annotated[str, Field(min_length=1, max_length=200)]


class OperationState(StrEnum):
    """The state of an asynchronous write."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@serve(path="operations", filters=("state",), operations=READS)
class Operation(
    Entity,
    name="operation.v1.Operation",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(start=4, max=256),
    expires="expires_at",
):
    """The record of an asynchronous write and its outcome.

    `status` is the status that the same request would have got at once. `problem` is its problem document if it failed.
    """

    tenant_id: str
    id: str = new_id()
    state: OperationState = OperationState.PENDING
    method: ShortText
    target: Annotated[str, Field(max_length=8192)]
    request: ShortText | None = None
    status: int | None = None
    problem: dict[str, JsonValue] | None = None
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    expires_at: datetime | None = None
