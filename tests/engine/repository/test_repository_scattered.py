"""Random placement: a shard is drawn for each new item, and all shards are searched for a key."""

from typing import Any

import pytest

from dynashard.errors import AlreadyExistsError, NotFoundError, RevisionMismatchError, UnprocessedError
from dynashard.testing.faults import conflict, meanwhile, repeated, unprocessed
from dynashard.topology import Phase, View
from dynashard.transport import metered
from tests.engine.stored_things import Event, World, places

pytestmark = pytest.mark.engine

KEY = {"tenant": "abc", "id": "1"}


def event(identity: str = "1", **fields: Any) -> Event:
    return Event(tenant="abc", id=identity, **fields)


def draw(world: World, *numbers: float) -> None:
    """Set the shards that are drawn, in quarters of their number."""
    left = list(numbers)
    world.drawn = lambda: left.pop(0) if len(left) > 1 else left[0]


def shards(world: World) -> list[str]:
    return [place.rpartition(":")[2] for place, _ in places(world.raw())]


def test_new_items_go_to_the_shard_that_is_drawn(world: World) -> None:
    for number, drawn in enumerate((0.0, 0.26, 0.5, 0.999)):
        draw(world, drawn)
        world.events.create(event(str(number)))

    assert places(world.raw()) == [(f"test.v1.Event:abc:{number}", str(number)) for number in range(4)]


def test_only_items_with_one_home_are_created_together_with_something_else(world: World) -> None:
    assert not world.events.can_create_with
    assert world.people.can_create_with


@pytest.mark.parametrize("drawn", [0.0, 0.3, 0.6, 0.9])
def test_item_is_found_read_changed_and_deleted_wherever_it_is(world: World, drawn: float) -> None:
    draw(world, drawn)
    made = world.events.create(event())
    draw(world, 1 - drawn - 0.05)

    assert world.events.get(KEY, consistent=True) == made
    assert world.events.exists(KEY)
    assert world.events.part(KEY, fields=["id", "seen"]) == ({"id": "1", "seen": made.seen}, made.revision)
    assert world.events.update(KEY, add={"seen": 2}).seen == 2
    assert world.events.update(KEY, set={"kind": "odd"}).kind == "odd"
    assert world.events.put(event(kind="new")).created is False
    assert world.events.replace(world.events.get(KEY), if_match=world.events.get(KEY).revision).kind == "new"
    with pytest.raises(RevisionMismatchError):
        world.events.update(KEY, add={"seen": 1}, if_match="rev-0")
    assert world.entries("GSI1") == [("test.v1.Event:abc", "new")]
    assert len(world.raw()) == 1
    world.events.delete(KEY)
    assert world.raw() == []


def test_a_missing_item_is_not_found(world: World) -> None:
    for attempt in (
        lambda: world.events.get(KEY),
        lambda: world.events.update(KEY, add={"seen": 1}),
        lambda: world.events.delete(KEY),
    ):
        with pytest.raises(NotFoundError):
            attempt()
    with pytest.raises(RevisionMismatchError):
        world.events.put(event(), if_match="rev-0")

    assert world.events.find(KEY) is None
    assert not world.events.exists(KEY)
    assert world.events.put(event()).created is True


def test_creating_into_a_shard_that_has_the_key_is_refused(world: World) -> None:
    world.events.create(event())

    with pytest.raises(AlreadyExistsError):
        world.events.create(event())


def test_item_that_was_created_twice_is_one_for_readers_and_deleted_whole(world: World) -> None:
    for drawn in (0.3, 0.9):
        draw(world, drawn)
        world.events.create(event())

    assert world.events.get(KEY) == world.events.batch_get([KEY])[0]
    world.events.delete(KEY)
    assert world.raw() == []


@pytest.mark.parametrize("asked", [{}, {"if_match": "seen"}, {"handling": "guarded"}])
def test_an_item_that_was_created_twice_is_deleted_by_the_revision_that_readers_see(
    world: World, asked: dict[str, str]
) -> None:
    for drawn in (0.9, 0.3):
        draw(world, drawn)
        world.events.create(event())
    seen = world.events.get(KEY, consistent=True).revision
    with pytest.raises(RevisionMismatchError):
        world.events.delete(KEY, if_match="rev-0")
    assert len(world.raw()) == 2

    world.events.delete(KEY, **{name: str(seen) if value == "seen" else value for name, value in asked.items()})

    assert world.raw() == []


def test_an_item_that_was_created_twice_is_deleted_although_others_delete_it(world: World) -> None:
    for drawn in (0.3, 0.9):
        draw(world, drawn)
        world.events.create(event())
    [unseen] = [item for item in world.raw() if item["PK"]["S"].endswith(":3")]
    key = {"PK": unseen["PK"], "SK": unseen["SK"]}
    world.faults(meanwhile("DeleteItem", lambda: world.dynamodb.call("DeleteItem", TableName=world.table, Key=key)))

    world.events.delete(KEY)

    assert world.raw() == []


@pytest.mark.parametrize(
    ("view", "writers", "readers"),
    [
        (View(4), 4, 4),
        (View(4, Phase.PREPARE, 16), 4, 16),
        (View(16), 16, 16),
        (View(16, Phase.PREPARE, 4), 4, 16),
    ],
)
def test_writers_use_the_smaller_count_and_readers_the_larger(
    world: World, view: View, writers: int, readers: int
) -> None:
    world.views.now = view
    draw(world, 0.999)
    world.events.create(event())
    world.events.batch_write(put=[event("2")])
    third = {"PK": {"S": f"test.v1.Event:abc:{readers - 1}"}, "SK": {"S": "3"}, "id": {"S": "3"}}
    world.adopt({**world.raw()[0], **third})
    transport = world.faults()

    found = world.events.batch_get([KEY, {"tenant": "abc", "id": "2"}, {"tenant": "abc", "id": "3"}])

    assert None not in found
    assert sorted({int(shard) for shard in shards(world)}) == sorted({writers - 1, readers - 1})
    assert len(transport.calls[0].request["RequestItems"][world.table]["Keys"]) == 3 * readers
    world.events.delete({"tenant": "abc", "id": "3"})
    assert len(world.raw()) == 2


def test_batches_put_new_items_in_drawn_shards_and_known_ones_where_they_are(world: World) -> None:
    draw(world, 0.3)
    world.events.batch_write(put=[event(str(number)) for number in range(6)])
    known = world.events.batch_get([{"tenant": "abc", "id": str(number)} for number in range(3)])
    draw(world, 0.9)

    changed = [each.model_copy(update={"kind": "old"}) for each in known if each is not None]
    transport = world.faults()
    gone = [{"tenant": "abc", "id": each} for each in ("3", "4", "nobody")]
    world.events.batch_write(put=[*changed, event("new")], delete=gone)

    assert [call.operation for call in transport.calls] == ["BatchGetItem", "BatchGetItem", "BatchWriteItem"]
    stored = sorted((item["id"]["S"], item["PK"]["S"][-1], item["kind"]["S"]) for item in world.raw())
    assert stored == [("0", "1", "old"), ("1", "1", "old"), ("2", "1", "old"), ("5", "1", "any"), ("new", "3", "any")]


def test_a_batch_that_is_sent_again_keeps_its_drawn_shards(world: World) -> None:
    draw(world, 0.0, 0.3, 0.6, 0.9)
    transport = world.faults(unprocessed("BatchWriteItem", keep=2))

    world.events.batch_write(put=[event("1"), event("2"), event("3")])

    assert transport.waiting == []
    assert transport.sent("BatchGetItem") == 0
    assert shards(world) == ["0", "1", "2"]


def test_unprocessed_keys_are_named(world: World) -> None:
    world.faults(unprocessed("BatchWriteItem", keep=1, nth=None), unprocessed("BatchGetItem", keep=3, nth=None))

    with pytest.raises(UnprocessedError) as written:
        world.events.batch_write(put=[event("1"), event("2")])
    with pytest.raises(UnprocessedError) as read:
        world.events.batch_get([KEY])

    assert written.value.details == {"keys": [{"tenant": "abc", "id": "2"}]}
    assert read.value.details == {"keys": [KEY]}
    assert len(world.throttles) == 2


def test_lost_answers_are_recognised(world: World) -> None:
    world.faults(repeated("PutItem"), repeated("UpdateItem"))

    made = world.events.create(event())
    assert world.events.update(made, add={"seen": 1}).seen == 1
    assert world.events.get(KEY).seen == 1
    world.events.delete(KEY)

    assert world.raw() == []


def test_a_put_searches_again_for_an_item_deleted_meanwhile(world: World) -> None:
    world.events.create(event())
    other = world.events
    draw(world, 0.9)
    transport = world.faults(meanwhile("UpdateItem", lambda: other.delete(KEY)))

    assert world.events.put(event(kind="new")).created is True
    assert transport.waiting == []
    assert shards(world) == ["3"]


def test_an_update_of_an_item_deleted_meanwhile_is_not_found(world: World) -> None:
    world.events.create(event())
    other = world.events
    world.faults(meanwhile("UpdateItem", lambda: other.delete(KEY)))

    with pytest.raises(NotFoundError):
        world.events.update(KEY, add={"seen": 1})


def test_conflicts_are_waited_for(world: World) -> None:
    transport = world.faults(conflict("PutItem"), conflict("UpdateItem"))

    world.events.create(event())
    world.events.update(KEY, add={"seen": 1})

    assert transport.waiting == []
    assert len(world.raw()) == 1


def test_operations_cost_what_is_documented(world: World) -> None:
    with metered() as create:
        world.events.create(event())
    with metered() as get:
        world.events.get(KEY)
    with metered() as update:
        world.events.update(KEY, add={"seen": 1})

    assert (create.consumed.requests, create.consumed.write_units) == (1, 2)
    assert (get.consumed.requests, get.consumed.read_units) == (1, 2)
    assert (update.consumed.requests, update.consumed.read_units) == (2, 4)
