"""Changes of lists that read the item keep the members of objects that only a newer version declares."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, model_validator

from dynashard import Dynashard, Entity, Key, Registry, Update
from dynashard.testing.faults import FaultyTransport
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.declare import Exposed
from tests.api_caller import TENANT
from tests.engine.api.api_on_engine import KEYS, caller_exposing

pytestmark = pytest.mark.engine

KEY = {"tenant_id": TENANT, "id": "p"}


class OldStep(BaseModel, extra="forbid"):
    name: str
    minutes: int = 0
    users: list[str] = []


class NewStep(OldStep, extra="forbid"):
    color: str | None = None


class OldPart(BaseModel, extra="forbid"):
    steps: list[OldStep] = []


class NewPart(BaseModel, extra="forbid"):
    steps: list[NewStep] = []


class OldPlan(Entity, name="lists.v1.Plan", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    steps: list[OldStep] | None = None
    parts: dict[str, OldPart] = Field(default_factory=dict)
    rows: list[list[OldStep]] = Field(default_factory=list)
    gaps: list[OldStep | None] = Field(default_factory=list)
    pair: tuple[OldStep, OldStep] | None = None
    title: str = ""


class NewPlan(Entity, name="lists.v1.Plan", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    steps: list[NewStep] | None = None
    parts: dict[str, NewPart] = Field(default_factory=dict)
    rows: list[list[NewStep]] = Field(default_factory=list)
    gaps: list[NewStep | None] = Field(default_factory=list)
    pair: tuple[NewStep, NewStep] | None = None
    title: str = ""


def old(*names: str, **minutes: int) -> list[OldStep]:
    return [OldStep(name=name, minutes=minutes.get(name, 0), users=[f"u{name}"]) for name in names]


def new(*names: str, **minutes: int) -> list[NewStep]:
    """Return steps of a newer version; one whose name begins with `?` has what the older one declares alone."""
    return [
        NewStep(
            name=name.removeprefix("?"),
            minutes=minutes.get(name, 0),
            users=[f"u{name.removeprefix('?')}"],
            color=None if name.startswith("?") else f"color of {name}",
        )
        for name in names
    ]


class World:
    def __init__(self, wire: Transport, table: str) -> None:
        self.wire = FaultyTransport(wire, ())
        self.table = table
        self.db = Dynashard(self.wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)

    def store(self, steps: Sequence[NewStep] | None, **parts: NewPart) -> None:
        self.db.collection(NewPlan).put(NewPlan(**KEY, steps=steps and list(steps), parts=parts))

    def sent(self, act: Callable[[], object]) -> list[str]:
        before = len(self.wire.calls)
        act()
        return [call.operation for call in self.wire.calls[before:]]

    @property
    def plan(self) -> NewPlan:
        return self.db.collection(NewPlan).get(KEY, consistent=True)


@pytest.fixture
def world(wire: Transport, table: str) -> World:
    return World(wire, table)


def guarded(world: World, steps: list[OldStep]) -> object:
    return world.db.collection(OldPlan).update(KEY, set={"steps": steps}, handling="guarded")


def in_a_transaction(world: World, steps: list[OldStep]) -> object:
    return world.db.transact(Update(OldPlan, KEY, set={"steps": steps}, returns=True))


def put_over(world: World, steps: list[OldStep]) -> object:
    plans = world.db.collection(OldPlan)
    read = plans.get(KEY, consistent=True)
    return plans.put(OldPlan(**{**read.__dict__, "steps": steps}), over=read)


def patched(world: World, steps: list[OldStep]) -> object:
    caller = caller_exposing(world.wire, world.table, Exposed(OldPlan, "plans"))
    answer = caller.patch("/v1/plans/p", {"steps": [step.model_dump() for step in steps]})
    assert answer.status == 200, answer.content
    return answer


def in_a_batch(world: World, steps: list[OldStep]) -> None:
    world.db.collection(OldPlan).batch_write(put=[OldPlan(**KEY, steps=steps)])


WRITES = [guarded, in_a_transaction, put_over, patched, in_a_batch]
EDITS: dict[str, tuple[list[OldStep], list[NewStep]]] = {
    "one changed": (
        old("a", "b", "c", b=5),
        [*new("a"), NewStep(name="b", minutes=5, users=["ub"], color="color of b"), *new("c")],
    ),
    "appended": (old("a", "b", "c", "d"), new("a", "b", "c", "?d")),
    "first removed": (old("b", "c"), new("b", "c")),
    "middle removed": (old("a", "c"), new("a", "c")),
    "last removed": (old("a", "b"), new("a", "b")),
    "all replaced": ([], []),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("write", WRITES)
def test_objects_of_a_list_keep_members_that_the_writer_does_not_declare(
    world: World, write: Callable[[World, list[OldStep]], object], edit: str
) -> None:
    steps, expected = EDITS[edit]
    world.store(new("a", "b", "c"))

    write(world, steps)

    assert world.plan.steps == expected


def test_it_takes_no_request_more(world: World) -> None:
    world.store(new("a", "b", "c"))

    update = world.sent(lambda: guarded(world, old("a", "b", "c", c=1)))
    transaction = world.sent(lambda: in_a_transaction(world, old("a", "b", "c", c=2)))

    assert (update, transaction) == (["GetItem", "UpdateItem"], ["GetItem", "TransactWriteItems"])


@pytest.mark.parametrize("names", [("b", "a"), ("a", "c", "b"), ("z", "a", "b"), ("b", "x")])
def test_an_object_that_may_have_moved_takes_no_member_of_another(world: World, names: tuple[str, ...]) -> None:
    world.store(new("a", "b"))

    guarded(world, old(*names))

    found = world.plan.steps or []
    assert [step.name for step in found] == list(names)
    assert all(step.color in {None, f"color of {step.name}"} for step in found)


def test_lists_within_objects_and_mappings_are_changed_alike(world: World) -> None:
    world.store(None, one=NewPart(steps=new("a", "b")), two=NewPart(steps=new("c")))

    parts = {"one": OldPart(steps=old("a", "b", a=9)), "three": OldPart(steps=old("d"))}
    world.db.collection(OldPlan).update(KEY, set={"parts": parts}, handling="guarded")

    [first, second] = world.plan.parts["one"].steps
    assert (first.minutes, first.color, second.color) == (9, "color of a", "color of b")
    assert world.plan.parts.keys() == {"one", "three"}


def test_lists_of_lists_tuples_and_lists_with_gaps_are_changed_alike(world: World) -> None:
    a, b, c = new("a", "b", "c")
    world.db.collection(NewPlan).put(NewPlan(**KEY, rows=[[a], [b, c]], gaps=[a, None, b], pair=(a, b)))
    rows, gaps = [old("a"), old("b", "c", b=5)], [*old("a", a=5), None, *old("b")]

    world.db.collection(OldPlan).update(
        KEY, set={"rows": rows, "gaps": gaps, "pair": tuple(old("a", "b", b=5))}, handling="guarded"
    )

    changed_a, changed_b = (each.model_copy(update={"minutes": 5}) for each in (a, b))
    assert world.plan.rows == [[a], [changed_b, c]]
    assert world.plan.gaps == [changed_a, None, b]
    assert world.plan.pair == (a, changed_b)


@pytest.mark.parametrize("write", ["update", "put"])
def test_a_list_of_lists_that_was_stored_before_its_objects_had_a_member_is_changed(world: World, write: str) -> None:
    world.db.collection(OldPlan).put(OldPlan(**KEY, rows=[old("a")], pair=tuple(old("a", "b"))))
    plans = world.db.collection(NewPlan)
    changed = {"rows": [new("a", "b")], "pair": tuple(new("b", "a"))}

    if write == "update":
        plans.update(KEY, set=changed, handling="guarded")
    else:
        plans.put(world.plan.model_copy(update=changed), over=world.plan)

    assert (world.plan.rows, world.plan.pair) == (changed["rows"], changed["pair"])


def test_clearing_a_long_list_leaves_room_for_the_members_of_others(world: World) -> None:
    world.store(new(*(f"n{number}" for number in range(700))), one=NewPart(steps=new("a")))

    parts = {"one": OldPart(steps=old("a", a=9))}
    world.db.collection(OldPlan).update(KEY, set={"steps": [], "parts": parts}, handling="guarded")

    assert world.plan.steps == []
    assert [(step.minutes, step.color) for step in world.plan.parts["one"].steps] == [(9, "color of a")]


def test_a_list_is_written_whole_if_its_members_do_not_fit_into_an_expression(world: World) -> None:
    names = [f"n{number}" for number in range(300)]
    world.store(new(*names))

    guarded(world, old(*names, **dict.fromkeys(names, 3)))

    assert [step.minutes for step in world.plan.steps or []] == [3] * 300


def test_every_list_becomes_every_other_and_no_object_has_a_color_that_it_never_had(world: World) -> None:
    random, kinds = Random(20261127), "abcd"
    for _ in range(150):
        before = new(*(random.choice(kinds) for _ in range(random.randrange(6))))
        after = old(*(random.choice(kinds) for _ in range(random.randrange(6))))
        for write in random.sample(WRITES[:2] + WRITES[4:], 1):
            world.store(before)
            write(world, after)
            found = world.plan.steps or []
            assert [OldStep(**step.model_dump(exclude={"color"})) for step in found] == after, (before, after)


def by_name(steps: list[Any]) -> list[Any]:
    return sorted(steps, key=lambda step: str(step.name))


class SortedPlan(Entity, name="lists.v1.Plan", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    steps: Annotated[list[OldStep], AfterValidator(by_name)]


class WholeSortedPlan(Entity, name="lists.v1.Plan", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    steps: list[OldStep]

    @model_validator(mode="after")
    def _sorted(self) -> "WholeSortedPlan":
        self.__dict__["steps"] = by_name(self.steps)
        return self


@pytest.mark.parametrize("model", [SortedPlan, WholeSortedPlan])
def test_a_list_that_a_validator_sorts_is_written_whole(world: World, model: type[Any]) -> None:
    world.store(new("b", "a"))
    assert [step.name for step in world.db.collection(model).get(KEY).steps] == ["a", "b"]

    world.db.collection(model).update(KEY, set={"steps": old("a", "b", b=7)}, handling="guarded")

    found = [(step.name, step.minutes) for step in world.plan.steps or []]
    assert found == [("a", 0), ("b", 7)]
