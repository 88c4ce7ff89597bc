"""Writes keep what a stored item has besides the attributes that this version declares; nothing expired comes back."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import create_model

from dynashard import Entity, Index, Key, Registry
from dynashard.schema import MAX_FIELDS
from dynashard.topology import Phase
from dynashard.transactions import Put, Update
from tests.engine.repository.moving_states import STATES, build
from tests.engine.repository.moving_things import Spot
from tests.engine.stored_things import NOON, Note, World, person

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

FOREIGN = {
    "Newer": {"S": "field"},
    "Nested": {"M": {"a": {"L": [{"N": "1"}]}}},
    "GSI2PK": {"S": "test.v1.Note:newer"},
    "GSI2SK": {"S": "index"},
}
NOTE = {"tenant": "abc", "id": "1"}

Act = Callable[[World], Any]


def note(text: str = "mine", **more: Any) -> Note:
    return Note(**NOTE, text=text, **more)


def stored(world: World, **more: Any) -> None:
    """Store a note with attributes that its entity does not declare."""
    world.notes.create(Note(**NOTE, text="old", labels={"a"}))
    world.adopt({**world.only(), **FOREIGN, **more})


def replace_what_was_read(world: World) -> Note:
    return world.notes.replace(world.notes.get(NOTE).model_copy(update={"text": "mine"}))


WRITES: dict[str, Act] = {
    "put": lambda world: world.notes.put(note()),
    "put at a revision": lambda world: world.notes.put(note(), if_match=world.only()["Rev"]["S"]),
    "guarded put": lambda world: world.notes.put(note(), handling="guarded"),
    "put exactly once": lambda world: world.notes.put(note(), handling="exactly-once"),
    "replace what was read": replace_what_was_read,
    "put in a transaction": lambda world: world.transact(Put(note())),
    "put in a transaction at a revision": lambda world: world.transact(Put(note(), if_match=world.only()["Rev"]["S"])),
    "update": lambda world: world.notes.update(NOTE, set={"text": "mine"}),
    "update in a transaction": lambda world: world.transact(Update(Note, NOTE, set={"text": "mine"})),
    "batch": lambda world: world.notes.batch_write(put=[note()]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_keeps_what_its_version_does_not_declare(world: World, write: Act) -> None:
    stored(world)

    write(world)

    item = world.only()
    assert item["text"] == {"S": "mine"}
    assert {name: item.get(name) for name in FOREIGN} == FOREIGN


def test_a_put_removes_what_its_version_declares_and_the_item_lacks(world: World) -> None:
    world.people.create(person(team="blue", rank=1, nickname="ada", until=NOON.replace(year=2030)))
    world.adopt({**world.only(), "MovedFrom": {"N": "1"}, "Newer": {"S": "field"}})

    world.people.put(person(team=None, nickname=None))

    item = world.only()
    assert item.keys().isdisjoint({"team", "rank", "ExpiresAt", "GSI2PK", "GSI2SK", "MovedFrom"})
    assert (item["nickname"], item["Newer"]) == ({"NULL": True}, {"S": "field"})


def test_an_expiry_that_this_version_does_not_declare_is_kept(world: World) -> None:
    stored(world, ExpiresAt={"N": str(int(world.clock.at) + 60)})

    world.notes.put(note())

    assert world.only()["ExpiresAt"] == {"N": str(int(world.clock.at) + 60)}


DEAD_WRITES = {name: act for name, act in WRITES.items() if name in ("put", "guarded put", "put exactly once", "batch")}
DEAD_WRITES |= {"create": lambda world: world.notes.create(note()), "transaction": WRITES["put in a transaction"]}


@pytest.mark.parametrize("write", DEAD_WRITES.values(), ids=DEAD_WRITES)
def test_nothing_of_an_expired_item_is_left_in_a_new_one(world: World, write: Act) -> None:
    stored(world, ExpiresAt={"N": str(int(world.clock.at) - 1)})

    written = write(world)

    assert world.only().keys() == {"PK", "SK", "Type", "Rev", "tenant", "id", "text", "reads", "stars"}
    assert getattr(written, "created", True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.MOVE, Phase.SETTLE])
@pytest.mark.parametrize("write", ["put", "batch", "put in a transaction"])
def test_a_write_keeps_it_in_every_phase_and_revives_nothing(world: World, phase: Phase, write: str) -> None:
    spot = Spot(world, 2, 8)
    for state in STATES[phase]:
        spot.enter(Phase.STABLE)
        build(spot, state)
        for found in world.raw():
            world.adopt({**found, "Newer": {"S": "field"}})
        spot.enter(phase)

        _write(world, write, Note(**spot.key, text="mine"))

        [after] = [each for each in world.raw() if each.get("text") == {"S": "mine"} and "MovedTo" not in each]
        assert ("Newer" in after) == ("live" in state), state


def _write(world: World, how: str, item: Note) -> None:
    if how == "batch":
        world.notes.batch_write(put=[item])
    elif how == "put":
        world.notes.put(item)
    else:
        world.transact(Put(item))


def test_a_put_over_a_live_item_costs_one_request(world: World) -> None:
    world.notes.create(note("old"))
    transport = world.faults()

    world.notes.put(note())

    assert [call.operation for call in transport.calls] == ["UpdateItem"]


def test_an_entity_with_the_most_fields_can_be_replaced(world: World) -> None:
    names = [f"field_{number}" for number in range(MAX_FIELDS - 2)]
    fields: dict[str, Any] = dict.fromkeys(names, (str | None, None))

    class Base(Entity):
        tenant: str
        id: str

    slots = [Index(f"GSI{n}", f"by_{n}", partition="{tenant}", sort=f"{{field_{n}}}") for n in (1, 2, 3)]
    wide = create_model(
        "Wide", __base__=Base, __cls_kwargs__={
            "name": "test.v1.Wide", "key": Key(partition="{tenant}", sort="{id}"), "indexes": slots,
            "registry": Registry(),
        }, **fields,
    )  # fmt: skip
    transport, filled = world.faults(), dict.fromkeys(names, "x")
    items = world.of(wide)
    items.create(wide(**NOTE))

    items.put(wide(**NOTE, **filled))
    items.put(wide(**NOTE))
    again = items.put(wide(**NOTE, **filled), if_match=world.only()["Rev"]["S"]).item

    assert max(len(call.request.get("UpdateExpression", "")) for call in transport.calls) <= 4096
    assert world.only().keys() >= filled.keys()
    assert again.revision == world.only()["Rev"]["S"]
