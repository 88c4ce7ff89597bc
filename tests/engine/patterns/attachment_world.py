"""Entities with attachments, and the items that are stored for them."""

import base64
import random
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import BaseModel, JsonValue

from dynashard import Collection, Entity, Index, Key, Registry, Shards, created_at, updated_at
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from dynashard_patterns import Attachment
from tests.engine.stored_things import CURSORS, World

REGISTRY = Registry()


class Report(
    Entity,
    name="test.v1.Report",
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_state", partition="{tenant}:{state}", sort="{id}")],
    expires="until",
    registry=REGISTRY,
):
    """An entity with two attachments, stamps and an expiry."""

    tenant: str = "abc"
    id: str = "1"
    title: str = ""
    state: str = "open"
    made: datetime = created_at()
    changed: datetime = updated_at()
    until: datetime | None = None
    details: Annotated[JsonValue | None, Attachment()] = None
    trace: Annotated[bytes | None, Attachment(max_bytes=2_000_000)] = None


class Place(BaseModel, extra="forbid"):
    """An object within an item."""

    street: str = ""
    city: str | None = None


class Visit(Entity, name="test.v1.Visit", key=Key("{tenant}", "{id}"), shards=Shards(4), registry=REGISTRY):
    """An entity with an object and an attachment."""

    tenant: str = "abc"
    id: str = "1"
    place: Place = Place()
    details: Annotated[JsonValue | None, Attachment()] = None


FIELDS = ("details", "trace")
KEY = {"tenant": "abc", "id": "1"}


def reports(world: World, transport: Transport | None = None) -> Collection[Report]:
    """Return the reports of a world, on its current transport or another one."""
    store = world.store if transport is None else replace(world.store, transport=transport)
    return Collection(store, CURSORS, Report)


def large(seed: int, kilobytes: int = 900) -> dict[str, Any]:
    """Return a document that compresses badly, so that it takes several pieces."""
    noise = random.Random(seed).randbytes(kilobytes * 768)
    return {"seed": seed, "noise": base64.b64encode(noise).decode()}


def everything(world: World) -> list[Wire]:
    """Return all stored items, read in as many requests as several MB need."""
    found: list[Wire] = []
    start: dict[str, Any] = {}
    while True:
        answer = world.dynamodb.call("Scan", TableName=world.table, ConsistentRead=True, **start)
        found += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return found
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def stored(world: World) -> dict[str, list[str]]:
    """Return the sort keys of stored manifests and pieces, by `Type`."""
    found: dict[str, list[str]] = {}
    for item in everything(world):
        kind = item.get("Type", {}).get("S", "")
        if "~" in kind:
            found.setdefault(kind, []).append(item["SK"]["S"])
    return found


def versions(world: World) -> set[str]:
    """Return the versions of which anything is stored."""
    return {key.split("#")[1] for keys in stored(world).values() for key in keys}


def pointed(world: World) -> set[str]:
    """Return the versions that items point to."""
    held = [item[name]["M"]["V"]["S"] for item in everything(world) for name in FIELDS if name in item]
    return set(held)


class Killed(BaseException):
    """The process was killed."""


class Dying(OneByOne):
    """Kills its process before one of its requests is sent."""

    def __init__(self, inner: Transport, *, before: int) -> None:
        self.inner = inner
        self.left = before

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        if self.left == 0:
            raise Killed
        self.left -= 1
        return self.inner.call(operation, request, resend=resend)

    def close(self) -> None:
        self.inner.close()
