"""An entity with unique fields, and what is reserved for its items."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import StringConstraints

from dynashard import Entity, Index, Key, Registry, Shards, Unique, definition, updated_at
from dynashard.entity.uniqueness import kinds_of, reserved_for
from tests.engine.resharding.resharding_world import Moving
from tests.engine.stored_things import World

UNIQUE = Registry()


class Member(
    Entity,
    name="test.v1.Member",
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_mail", partition="{tenant}", sort="{mail}")],
    expires="until",
    unique=("mail", Unique(("team", "number"), within="{tenant}"), Unique("badge", within="")),
    registry=UNIQUE,
):
    tenant: str = "abc"
    id: str
    mail: Annotated[str, StringConstraints(to_lower=True)] | None = None
    team: str | None = None
    number: int | None = None
    badge: str | None = None
    visits: int = 0
    changed: datetime = updated_at()
    until: datetime | None = None


MEMBER = definition(Member)


def member(identity: str = "1", **fields: Any) -> Member:
    return Member(id=identity, **fields)


def reservations(world: World | Moving) -> dict[str, str]:
    """Return the stored reservations: the sort key of the owner by the stored partition key."""
    kinds = kinds_of(MEMBER)
    return {row["PK"]["S"]: row["OwnerSort"]["S"] for row in world.raw() if row.get("Type", {}).get("S") in kinds}


def due(world: World | Moving) -> dict[str, str]:
    """Return the reservations that the stored items should have."""
    found: dict[str, str] = {}
    for row in world.raw():
        if row.get("Type", {}).get("S") == MEMBER.name and "MovedTo" not in row:
            item = MEMBER.decode(row)
            for place in reserved_for(MEMBER, item.__dict__):
                assert place not in found, f"{found[place]} and {item.id} both have what {place} is reserved for"
                found[place] = item.id
    return found


def agree(world: World) -> None:
    """Assert that each stored item has its reservations, and that there are no others."""
    assert reservations(world) == due(world)
