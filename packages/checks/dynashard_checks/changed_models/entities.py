"""Two versions of one entity: a name that was divided, an amount that became a number, and an index that is new."""

from typing import Any, Final

from dynashard import Entity, Index, Key, Registry, Shards

FAMILY: Final = "changed.v1.Part"
TENANT: Final = "abc"


def divided(values: dict[str, Any]) -> dict[str, Any]:
    """Make the values of version 2."""
    first, _, last = values.pop("name").partition(" ")
    return {**values, "first": first, "last": last, "amount": int(values["amount"])}


class OldPart(
    Entity,
    name=FAMILY,
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_name", partition="{tenant}", sort="{name}")],
    registry=Registry(),
):
    """Version 1."""

    tenant: str
    id: str
    name: str
    amount: str = "0"


class NewPart(
    Entity,
    name=FAMILY,
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(2),
    indexes=[
        Index("GSI1", "by_last", partition="{tenant}", sort="{last}"),
        Index("GSI2", "by_amount", partition="{tenant}", sort="{amount:05d}", shards=Shards(2), backfill=True),
    ],
    version=2,
    upgrade={1: divided},
    registry=Registry(),
):
    """Version 2, with another index in the first slot and a new one in the second."""

    tenant: str
    id: str
    first: str
    last: str
    amount: int = 0
