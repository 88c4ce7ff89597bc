"""Pages that a budget cuts short while items move: the listing continues without losing an item."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard import Budget, Dynashard, Entity, Key, Registry, Shards, definition
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.routing import home
from dynashard.schema import MOVED_FROM, MOVED_TO, PK, REV, SK, TYPE
from dynashard.topology import Phase, View
from dynashard.transport import Transport
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

OLD, NEW = 2, 8


class Note(
    Entity, name="short.v1.Note", key=Key(partition="{tenant}", sort="{id}"), shards=Shards(OLD), registry=Registry()
):
    tenant: str
    id: str


class FixedTopology:
    """Returns the view of the test for every logical partition."""

    def __init__(self, view: View) -> None:
        self._view = view

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del entity, partition
        return self._view

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        raise AssertionError(f"{entity.name} has no {index.name}")

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """The view is never cached."""


VIEWS = {
    "move": View(OLD, Phase.MOVE, NEW, markers=True),
    "settle": View(OLD, Phase.SETTLE, NEW, markers=True),
    "unswept": View(NEW, markers=True),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("phase", VIEWS)
@pytest.mark.parametrize("order", ["ordered asc", "ordered desc", "round_robin asc", "shard desc"])
def test_a_page_cut_short_at_a_marker_continues_with_its_item(
    wire: Transport, create_table: Callable[[], str], dynamodb: RawDynamoDB, phase: str, order: str
) -> None:
    table, entity = create_table(), definition(Note)
    names = [f"{number:03d}" for number in range(32)]
    for name in names:
        key = entity.key_of({"tenant": "t", "id": name})
        old, new = home(entity, key, OLD), home(entity, key, NEW)
        item = {
            SK: {"S": name},
            "tenant": {"S": "t"},
            "id": {"S": name},
            TYPE: {"S": entity.name},
            REV: {"S": "r"},
        }
        dynamodb.call("PutItem", TableName=table, Item={**item, PK: {"S": new}, MOVED_FROM: {"N": str(OLD)}})
        if old != new:
            dynamodb.call("PutItem", TableName=table, Item={**item, PK: {"S": old}, MOVED_TO: {"N": str(NEW)}})
    db = Dynashard(wire, table=table, cursor_keys=["a key for the tests"], topology=FixedTopology(VIEWS[phase]))
    how, direction = order.split()
    asked: dict[str, Any] = {"order": how, "direction": direction, "limit": 20, "budget": Budget(requests=1)}

    listed = [note.id for page in db.collection(Note).pages({"tenant": "t"}, **asked) for note in page.items]

    assert sorted(listed) == names
    if how == "ordered":
        assert listed == sorted(names, reverse=direction == "desc")
