"""Unique values of items that several epochs of a count place: kept by every write, whichever epoch its item is of."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard import Collection, Create, Delete, Dynashard, Entity, Key, Registry, Shards, Update, definition, new_id
from dynashard.entity.uniqueness import kinds_of, reserved_for
from dynashard.errors import NotUniqueError, TransactionRefusedError
from dynashard.resharding import Resharder
from dynashard.schema import PK, SK
from dynashard.testing.faults import FaultyTransport, lost_after, meanwhile
from tests.engine.epochs.epochs_world import Epochs, partition

pytestmark = pytest.mark.engine


class Badge(
    Entity,
    name="epoch.v1.Badge",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=64, placement="epochs"),
    unique=("code",),
    registry=Registry(),
):
    tenant: str = "abc"
    id: str = new_id()
    code: str | None = None
    n: int = 0


BADGE = definition(Badge)
ABC = partition(model=Badge)


def resharder(world: Epochs) -> Resharder:
    return world.resharder(entities=(Badge,))


def grow(world: Epochs, to: int) -> None:
    """Let the count grow by an epoch, and some time pass in it."""
    world.grow(to, ABC, resharder(world))
    world.clock.now += 10


def badges(db: Dynashard) -> Collection[Badge]:
    return db.collection(Badge)


def created(world: Epochs, *codes: str | None, by: Dynashard | None = None) -> list[Badge]:
    """Create an item of this moment for each code."""
    collection = badges(by or world.process())
    return [collection.create(Badge(id=world.id(), code=code)) for code in codes]


def agree(world: Epochs) -> None:
    """Check that each stored item has its reservation, and that there are no others."""
    rows = world.inner.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    kinds = kinds_of(BADGE)
    items = [BADGE.decode(row) for row in rows if row["Type"]["S"] == BADGE.name]
    due = {place: item.id for item in items for place in reserved_for(BADGE, item.__dict__)}
    assert {row[PK]["S"]: row["OwnerSort"]["S"] for row in rows if row["Type"]["S"] in kinds} == due
    assert len(due) == sum(item.code is not None for item in items), "two items have one value"


WRITES: dict[str, Callable[[Dynashard, Badge, str], Any]] = {
    "create": lambda db, new, code: badges(db).create(new.model_copy(update={"id": new_of(new), "code": code})),
    "put": lambda db, new, code: badges(db).put(new.model_copy(update={"code": code})),
    "put over": lambda db, new, code: badges(db).put(new.model_copy(update={"code": code}), over=new),
    "patch": lambda db, new, code: badges(db).update(new, code=code),
    "batch": lambda db, new, code: badges(db).batch_write([new.model_copy(update={"code": code})]),
    "transaction": lambda db, new, code: db.transact(Update(Badge, new, set={"code": code})),
}


def new_of(item: Badge) -> str:
    """Return another id of the same moment."""
    return item.id[:-1] + ("a" if item.id[-1] != "a" else "b")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("order", ["an older item has it", "a newer item has it"])
def test_a_value_of_an_item_of_another_epoch_is_refused_until_it_is_left(world: Epochs, write: str, order: str) -> None:
    [older] = created(world, "red")
    grow(world, 8)
    [newer] = created(world, "blue")
    has, wants = (older, newer) if order == "an older item has it" else (newer, older)
    db = world.process()

    with pytest.raises(Exception, match="another item has this code"):
        WRITES[write](db, wants, has.code or "")
    agree(world)
    assert badges(db).get(tenant="abc", code=has.code).id == has.id
    badges(db).update(has, code="green")
    WRITES[write](db, wants, has.code or "")

    agree(world)
    assert badges(db).get(tenant="abc", code=has.code).id != has.id
    assert badges(db).get(tenant="abc", code="green").id == has.id


def test_items_of_several_epochs_keep_leave_and_exchange_their_values(world: Epochs) -> None:
    [first] = created(world, "a")
    grow(world, 4)
    [second] = created(world, "b")
    grow(world, 16)
    [third] = created(world, "c")
    db = world.process()

    db.transact(Update(Badge, first, set={"code": "c"}), Update(Badge, third, set={"code": "a"}))
    agree(world)
    with pytest.raises(TransactionRefusedError) as refused:
        db.transact(Delete(Badge, second), Create(Badge(id=world.id(), code="c")))
    assert refused.value.reason == "not_unique"
    agree(world)
    db.transact(Delete(Badge, second), Create(Badge(id=world.id(), code="b")))
    agree(world)
    badges(db).delete(first)
    agree(world)

    assert badges(db).find(tenant="abc", code="c") is None
    assert badges(db).get(tenant="abc", code="a").id == third.id
    assert [count for count, _ in world.counts(ABC.key or "")] == [1, 4, 16]


@pytest.mark.parametrize("fault", [meanwhile, lost_after], ids=lambda fault: fault.__name__)
def test_a_create_that_is_executed_after_the_next_epoch_has_begun_keeps_its_value(world: Epochs, fault: Any) -> None:
    created(world, None)
    db = world.process(transport=FaultyTransport(world.inner, [fault("TransactWriteItems", lambda: grow(world, 8))]))

    [older] = created(world, "red", by=db)

    with pytest.raises(NotUniqueError):
        created(world, "red")
    assert badges(world.process()).get(tenant="abc", code="red").id == older.id
    agree(world)


def test_processes_with_and_without_the_next_epoch_refuse_each_others_values(world: Epochs) -> None:
    early = world.process()
    created(world, "red", by=early)
    controller = resharder(world)
    controller.start(ABC, 8)
    controller.advance(ABC.key)
    late = world.process()
    created(world, "blue", by=late)

    for db, code in ((early, "blue"), (late, "red")):
        with pytest.raises(NotUniqueError):
            created(world, code, by=db)
    agree(world)
    world.finish(ABC, controller)

    for code in ("blue", "red"):
        with pytest.raises(NotUniqueError):
            created(world, code)
    agree(world)


def test_a_value_is_taken_over_from_an_item_of_an_earlier_epoch_that_is_gone(world: Epochs) -> None:
    [older] = created(world, "red")
    [row] = [row for row in world.inner.call("Scan", {"TableName": world.table})["Items"] if row[SK]["S"] == older.id]
    grow(world, 8)
    with pytest.raises(NotUniqueError):
        created(world, "red")
    world.inner.call("DeleteItem", {"TableName": world.table, "Key": {PK: row[PK], SK: row[SK]}})

    [newer] = created(world, "red")

    assert badges(world.process()).get(tenant="abc", code="red").id == newer.id
    agree(world)
