"""Entities with detached fields, and what is stored of them, for the tests of that ability."""

import base64
import random
from datetime import datetime
from typing import Annotated, Any

from pydantic import JsonValue

from dynashard import Detached, Entity, Index, Key, Registry, Shards, created_at, updated_at
from dynashard.detached import DetachedRepository
from dynashard.entity import definition
from tests.engine.stored_things import World

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
    """With two detached fields, stamps and an expiry."""

    tenant: str = "abc"
    id: str = "1"
    title: str = ""
    state: str = "open"
    made: datetime = created_at()
    changed: datetime = updated_at()
    until: datetime | None = None
    details: Annotated[JsonValue | None, Detached()] = None
    trace: Annotated[bytes | None, Detached(max_bytes=2_000_000)] = None


KEY = {"tenant": "abc", "id": "1"}


def reports(world: World) -> DetachedRepository[Report]:
    """The reports of a world, on the transport in force."""
    return DetachedRepository(world.store, Report)


def large(seed: int, kilobytes: int = 900) -> dict[str, Any]:
    """A document that does not compress well: its pieces are more than one."""
    noise = random.Random(seed).randbytes(kilobytes * 768)
    return {"seed": seed, "noise": base64.b64encode(noise).decode()}


def stored(world: World) -> dict[str, list[str]]:
    """What is stored beside items: the sort keys of manifests and pieces, by `Type`."""
    found: dict[str, list[str]] = {}
    for item in world.raw():
        kind = item.get("Type", {}).get("S", "")
        if "~" in kind:
            found.setdefault(kind, []).append(item["SK"]["S"])
    return found


def versions(world: World) -> set[str]:
    """The versions of which anything is stored."""
    return {key.split("#")[1] for keys in stored(world).values() for key in keys}


def fields() -> list[str]:
    """The detached fields."""
    return sorted(definition(Report).detached)
