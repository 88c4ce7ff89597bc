"""Two versions of one domain on one table: the newer has a field, enum members, an index and a nested field more."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel

from dynashard import Dynashard, Entity, Index, Key, Registry, Shards, created_at, updated_at
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.declare import Exposed
from dynashard_serving.operation_records import Operation, OperationState
from dynashard_serving.operations.served import Served
from dynashard_serving.queue_messages import Message
from dynashard_serving.writer.operations import Operations
from tests.api_caller import TENANT, Caller
from tests.engine.api.api_on_engine import KEYS, caller_exposing
from tests.engine.commands.commands_on_engine import Service, commands_on

NAME = "two.v1.Task"


class OldKind(StrEnum):
    BUG = "bug"
    IDEA = "idea"


class NewKind(StrEnum):
    BUG = "bug"
    IDEA = "idea"
    QUESTION = "question"


class OldPlace(BaseModel, extra="forbid"):
    city: str
    street: str | None = None


class NewPlace(BaseModel, extra="forbid"):
    city: str | None = None
    street: str | None = None
    floor: int | None = None


class OldTask(
    Entity,
    name=NAME,
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_title", partition="{tenant_id}", sort="{title}")],
    registry=Registry(),
):
    tenant_id: str
    id: str
    title: str
    owner: str
    kind: OldKind = OldKind.BUG
    level: Literal["low", "high"] = "low"
    place: OldPlace | None = None
    tags: set[str] | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


class NewTask(
    Entity,
    name=NAME,
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(2),
    indexes=[
        Index("GSI1", "by_title", partition="{tenant_id}", sort="{title}"),
        Index("GSI2", "by_owner", partition="{tenant_id}:{owner}", sort="{title}"),
    ],
    registry=Registry(),
):
    tenant_id: str
    id: str
    title: str
    owner: str | None = None
    kind: NewKind = NewKind.BUG
    level: Literal["low", "middle", "high"] = "low"
    place: NewPlace | None = None
    tags: set[str] | None = None
    color: str | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


@dataclass(frozen=True)
class Version:
    """One version of the software: its REST API, direct invocation, queue writer and Python collection."""

    model: type[Entity]
    transport: Transport
    table: str

    @cached_property
    def exposed(self) -> Exposed:
        return Exposed(self.model, "tasks")

    @cached_property
    def db(self) -> Dynashard:
        return Dynashard(self.transport, table=self.table, topology=DeclaredTopology(), cursor_keys=KEYS)

    @cached_property
    def caller(self) -> Caller:
        return caller_exposing(self.transport, self.table, self.exposed)

    @cached_property
    def service(self) -> Service:
        return Service(commands_on(self.transport, self.table, exposed=(self.exposed,)), entity=NAME)

    @property
    def tasks(self) -> Collection[Any]:
        return self.db.collection(self.model)

    def queued(self, operation: str, **members: Any) -> int:
        """Do a write as the writer of the queue does; return the status of its record."""
        records = self.db.collection(Operation)
        record = records.create(Operation(tenant_id=TENANT, method="PATCH", target="/v1/tasks"))
        message = Message(Served(self.exposed), operation, TENANT, **{"items": (), **members}, operation_id=record.id)
        Operations(self.db).operate(message, 1)
        ended = records.get(record)
        assert ended.state is not OperationState.PENDING
        return ended.status or 0

    def shown(self, identity: str) -> dict[str, Any] | None:
        """Return an item as REST shows it, without what the server sets."""
        answer = self.caller.get(f"/v1/tasks/{identity}")
        assert answer.status in (200, 404), answer.content
        return None if answer.status == 404 else without_server_fields(answer.json)


def without_server_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("made", "changed", "revision")}
