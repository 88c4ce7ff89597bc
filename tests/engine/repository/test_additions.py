"""What is added to a field that is not stored, or is stored as None: as readers get the field."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import Field

from dynashard import Delete, Entity, Key, Put, Registry, Update
from dynashard.errors import InvalidQueryError, InvalidValueError, TransactionRefusedError
from tests.engine.stored_things import Note, World, key

pytestmark = pytest.mark.engine


class Stock(Entity, name="test.v1.Stock", key=Key("{id}"), registry=Registry()):
    """An entity whose fields do not begin with nothing."""

    id: str = "1"
    left: int = 10
    price: Decimal = Decimal("2.5")
    weight: float = 0.1
    limit: int | None
    most: int | None = 5
    tags: set[str] = Field(default={"new"})
    marks: set[str] = Field(default_factory=lambda: {"new"})


ADDITIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "number": ({"left": -1}, {"left": 9}),
    "fraction": ({"price": Decimal("0.5")}, {"price": Decimal(3)}),
    "float": ({"weight": 0.2}, {"weight": 0.3}),
    "none": ({"limit": 4}, {"limit": 4}),
    "none or a number": ({"most": 4}, {"most": 9}),
    "set": ({"tags": {"hot"}}, {"tags": {"new", "hot"}}),
    "made set": ({"marks": {"hot"}}, {"marks": {"new", "hot"}}),
    "several": ({"left": 1, "limit": 2, "weight": 0.2}, {"left": 11, "limit": 2, "weight": 0.3}),
}
HOW = ["plain", "exactly-once", "transaction", "returned"]


def add(world: World, how: str, added: dict[str, Any]) -> None:
    if how in ("plain", "exactly-once"):
        world.of(Stock).update(id="1", add=added, handling=how)
    else:
        [found] = world.transact(Update(Stock, {"id": "1"}, add=added, returns=how == "returned"))
        assert found is None or found.model_dump() == world.of(Stock).get(id="1").model_dump()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("added", "after"), ADDITIONS.values(), ids=ADDITIONS)
def test_a_field_that_is_not_stored_counts_as_its_default(
    world: World, how: str, added: dict[str, Any], after: dict[str, Any]
) -> None:
    """As in items that were stored before their class got the field."""
    stored = world.of(Stock).create(Stock(limit=None))
    own = {"PK", "SK", "Type", "Rev", "id", "limit"}
    world.adopt({name: value for name, value in world.only().items() if name in own})

    add(world, how, added)

    assert world.of(Stock).get(id="1").model_dump() == {**stored.model_dump(), **after}


@pytest.mark.parametrize("how", HOW)
def test_what_is_stored_is_added_to(world: World, how: str) -> None:
    world.of(Stock).create(Stock(left=3, limit=1, most=None, tags={"old"}))

    add(world, how, {"left": 1, "limit": 1, "most": 2, "tags": {"hot"}})

    found = world.of(Stock).get(id="1")
    assert (found.left, found.limit, found.most, found.tags) == (4, 2, 2, {"old", "hot"})


def test_adding_to_a_default_takes_one_request(world: World) -> None:
    world.of(Stock).create(Stock(limit=1))
    wire = world.faults()

    world.of(Stock).update(id="1", add={"left": 1, "price": 1})

    assert [call.operation for call in wire.calls] == ["UpdateItem"]


class Lives(Entity, name="test.v1.Lives", key=Key("{id}"), registry=Registry()):
    id: str
    left: int = 10


@pytest.mark.parametrize("stored", ["nothing", "an item without the field"])
def test_bounds_hold_from_the_default_on(world: World, stored: str) -> None:
    if stored != "nothing":
        world.of(Lives).create(Lives(id="1"))
        world.adopt({name: value for name, value in world.only().items() if name != "left"})

    def step(amount: int, **bounds: Any) -> Update:
        return Update(Lives, {"id": "1"}, add={"left": amount}, missing="create", **bounds)

    with pytest.raises(TransactionRefusedError) as over:
        world.transact(step(1, at_most={"left": 10}))
    with pytest.raises(TransactionRefusedError) as under:
        world.transact(step(-11, at_least={"left": 0}))
    world.transact(step(-10, at_least={"left": 0}))

    assert (over.value.reason, under.value.reason) == ("exhausted", "exhausted")
    assert world.of(Lives).get(id="1").left == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bound", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
@pytest.mark.parametrize("returns", [True, False])
def test_a_bound_that_is_no_number_is_refused(world: World, bound: Any, *, returns: bool) -> None:
    world.of(Lives).create(Lives(id="1"))

    with pytest.raises(InvalidValueError, match="give a number"):
        world.transact(Update(Lives, {"id": "1"}, add={"left": 1}, at_least={"left": bound}, returns=returns))


def test_an_addition_returns_the_item_that_it_creates_or_changes(world: World) -> None:
    step = Update(Note, key(), add={"reads": 2}, missing="create", returns=True)

    first, second = world.transact(step), world.transact(step)

    assert [first[0].reads, second[0].reads] == [2, 4]
    assert second[0] == world.notes.get(key())


def test_a_put_over_an_item_that_was_read_takes_no_other_revision(world: World) -> None:
    read = world.notes.create(Note(tenant="abc", id="1"))
    before = world.raw()

    with pytest.raises(InvalidQueryError, match="over names a revision itself"):
        world.transact(Put(read.model_copy(update={"text": "new"}), if_match="another", over=read))

    assert world.raw() == before


def test_a_delete_ignores_a_missing_item_only_if_it_says_so(world: World) -> None:
    with pytest.raises(InvalidValueError, match="it must be refuse or ignore"):
        world.transact(Delete(Note, key(), missing="refused"))  # type: ignore[arg-type]
