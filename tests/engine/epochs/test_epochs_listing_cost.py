"""What an ordered page costs after a count has grown by epochs: what it costs with the count of its own items."""

from typing import Any

import pytest

from dynashard import Entity, Key, Registry, Shards, new_id
from dynashard.testing.faults import FaultyTransport
from tests.engine.epochs.epochs_world import Epochs, Event

pytestmark = pytest.mark.engine

COUNTS = (4, 16, 64)
EACH = 200
"""Items of each epoch."""
TENANT = {"tenant": "abc"}


def of_one_epoch(count: int) -> type[Any]:
    """Return an entity like `Event` that has had this count from the beginning."""

    class Declared(
        Entity,
        name=f"epoch.v1.Constant{count}",
        key=Key("{tenant}", "{id}"),
        shards=Shards(count, max=64, placement="epochs"),
        registry=Registry(),
    ):
        tenant: str
        id: str = new_id()
        n: int = 0

    return Declared


def store(world: Epochs, *models: type[Any]) -> None:
    """Write the same new items as entities of each model."""
    ids = [world.id() for _ in range(EACH)]
    for model in models:
        world.process().collection(model).batch_write(put=[model(tenant="abc", id=each) for each in ids])


def page(world: Epochs, model: type[Any], direction: str) -> tuple[list[str], float]:
    """Return the ids of the first page of a listing and its read units, once fences are known."""
    items = world.process().collection(model)
    items.list(TENANT, order="ordered", direction=direction, limit=50)
    found = items.list(TENANT, order="ordered", direction=direction, limit=50)
    return [item.id for item in found.items], found.consumed.read_units


@pytest.fixture
def grown(world: Epochs) -> Epochs:
    """A partition that had 1, 4, 16 and 64 shards, and the same items under 1 and under 64 from the beginning."""
    models = (Event, of_one_epoch(1), of_one_epoch(64))
    store(world, *models)
    for count in COUNTS:
        world.grow(count)
        store(world, *models)
    return world


@pytest.mark.parametrize(("direction", "count"), [("desc", 64), ("asc", 1)])
def test_an_ordered_page_costs_what_the_count_of_its_items_costs(grown: Epochs, direction: str, count: int) -> None:
    ids, units = page(grown, Event, direction)
    same, alone = page(grown, of_one_epoch(count), direction)

    assert ids == same
    assert units <= 1.1 * alone


def test_an_item_of_any_epoch_is_read_by_one_request(grown: Epochs) -> None:
    wire = FaultyTransport(grown.inner)
    events = grown.process(transport=wire).collection(Event)
    ids = [item.id for item in events.items(TENANT, order="ordered")]
    assert len(ids) == (len(COUNTS) + 1) * EACH

    wire.inject()
    for each in ids[:: EACH // 2]:
        assert events.get(each, tenant="abc").id == each

    assert wire.sent("GetItem") == len(ids[:: EACH // 2])
    assert wire.sent("Query") == 0
