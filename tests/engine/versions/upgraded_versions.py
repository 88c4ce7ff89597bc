"""Three versions of one entity whose forms differ: a name that was divided, an age that became a number, a country."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from dynashard import Entity, Index, Key, Registry, Shards, created_at, updated_at
from tests.api_caller import TENANT

NAME = "grown.v1.Person"
KEY = {"tenant_id": TENANT, "id": "1"}


class Place(BaseModel, extra="forbid"):
    city: str
    street: str | None = None


def divide_name(values: dict[str, Any]) -> dict[str, Any]:
    first, _, last = values.pop("name").partition(" ")
    return {**values, "first": first, "last": last, "age": int(values["age"])}


def add_country(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "country": "CH" if values["age"] > 40 else "DE"}


class First(
    Entity,
    name=NAME,
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}")],
    registry=Registry(),
):
    tenant_id: str
    id: str
    name: str
    age: str = "30"
    email: str | None = None
    place: Place | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


class Second(
    Entity,
    name=NAME,
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(2),
    indexes=[
        Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}"),
        Index("GSI2", "by_last", partition="{tenant_id}", sort="{last}"),
    ],
    version=2,
    upgrade={1: divide_name},
    registry=Registry(),
):
    tenant_id: str
    id: str
    first: str
    last: str
    age: int = 30
    email: str | None = None
    place: Place | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()


class Third(
    Entity,
    name=NAME,
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(2),
    indexes=[
        Index("GSI1", "by_email", partition="{tenant_id}", sort="{email}"),
        Index("GSI2", "by_last", partition="{tenant_id}", sort="{last}"),
    ],
    version=3,
    upgrade={1: divide_name, 2: add_country},
    registry=Registry(),
):
    tenant_id: str
    id: str
    first: str
    last: str
    country: str
    age: int = 30
    email: str | None = None
    place: Place | None = None
    made: datetime = created_at()
    changed: datetime = updated_at()
