"""Several entities in one logical partition: each item is read as its own class."""

from datetime import UTC, datetime

import pytest

from dynashard import Dynashard, Entity, Key, Registry, Shards
from dynashard.errors import InvalidKeyError, NotFoundError
from dynashard.runtime import Runtime
from dynashard.topology import DeclaredTopology
from tests.engine.stored_things import World

pytestmark = pytest.mark.engine

REGISTRY = Registry()
SHARDS = Shards(4)


class Team(Entity, name="oncall.v1.Team", key=Key("{team}", "team#{team}", "team"), shards=SHARDS, registry=REGISTRY):
    team: str
    title: str


class Schedule(
    Entity, name="oncall.v1.Schedule", key=Key("{team}", "schedule#{id}", "team"), shards=SHARDS, registry=REGISTRY
):
    team: str
    id: str
    zone: str = "UTC"


class Shift(
    Entity,
    name="oncall.v1.Shift",
    key=Key("{team}", "shift#{schedule}#{start:%Y%m%dT%H%M%SZ}", "team"),
    shards=SHARDS,
    registry=REGISTRY,
):
    team: str
    schedule: str
    start: datetime
    person: str


class Override(
    Entity,
    name="oncall.v1.Override",
    key=Key("{team}", "override#{schedule}#{number:04d}", "team"),
    shards=SHARDS,
    registry=REGISTRY,
):
    team: str
    schedule: str
    number: int
    person: str


ITEMS: list[Entity] = [
    Override(team="red", schedule="day", number=7, person="grace"),
    Schedule(team="red", id="day"),
    Schedule(team="red", id="night", zone="CET"),
    Shift(team="red", schedule="day", start=datetime(2026, 1, 1, 9, tzinfo=UTC), person="ada"),
    Shift(team="red", schedule="day", start=datetime(2026, 1, 2, 9, tzinfo=UTC), person="alan"),
    Team(team="red", title="The Reds"),
]


@pytest.fixture
def db(world: World) -> Dynashard:
    db = Dynashard(
        world.inner,
        table=world.table,
        topology=DeclaredTopology(),
        cursor_keys=["a-secret-for-cursors"],
        runtime=Runtime(world.clock),
    )
    for item in ITEMS:
        db.collection(type(item)).create(item)
    db.collection(Team).create(Team(team="blue", title="The Blues"))
    return db


@pytest.mark.parametrize("order", ["ordered", "shard", "round_robin"])
def test_family_is_listed_together_each_as_its_own_class(db: Dynashard, order: str) -> None:
    page = db.collection(Team, Schedule, Shift, Override).list({"team": "red"}, order=order)

    found = page.items if order == "ordered" else sorted(page.items, key=lambda item: type(item).__name__ + repr(item))
    expected = ITEMS if order == "ordered" else sorted(ITEMS, key=lambda item: type(item).__name__ + repr(item))
    assert [type(item) for item in found] == [type(item) for item in expected]
    assert [item.model_dump() for item in found] == [item.model_dump() for item in expected]
    assert page.cursor is None


def test_an_entity_of_a_family_lists_only_its_own_items(db: Dynashard) -> None:
    schedules = db.collection(Schedule).list({"team": "red"}, order="ordered").items
    listed = db.collection(Shift, Override).list({"team": "red"}, order="ordered").items

    assert [item.id for item in schedules] == ["day", "night"]
    assert [type(item).__name__ for item in listed] == ["Override", "Shift", "Shift"]


def test_single_items_of_a_family_are_kept_apart(db: Dynashard, world: World) -> None:
    schedules, teams = db.collection(Schedule), db.collection(Team)

    schedules.update({"team": "red", "id": "day"}, set={"zone": "PST"})
    schedules.delete({"team": "red", "id": "night"})

    assert schedules.get({"team": "red", "id": "day"}).zone == "PST"
    assert teams.get({"team": "red"}).title == "The Reds"
    with pytest.raises(NotFoundError):
        schedules.get({"team": "red", "id": "red"})
    assert len(world.raw()) == len(ITEMS)
    assert {item["PK"]["S"].rpartition(":")[0] for item in world.raw()} == {"team:red", "team:blue"}


@pytest.mark.parametrize("schedule", ["day#1", "#", "a#b#c"])
def test_a_value_with_the_separator_of_keys_is_refused(db: Dynashard, schedule: str) -> None:
    with pytest.raises(InvalidKeyError, match="schedule may not contain '#'"):
        db.collection(Override).create(Override(team="red", schedule=schedule, number=1, person="x"))
