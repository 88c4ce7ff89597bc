"""Listings by fields that have one of a few values: others are refused in Python as they are over REST."""

from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal

import pytest

from dynashard import Dynashard, Entity, Index, Key, Registry
from dynashard.errors import InvalidKeyError
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.declare import Exposed
from tests.engine.api.api_on_engine import KEYS, caller_exposing

pytestmark = pytest.mark.engine


class State(StrEnum):
    OPEN = "open"
    SHUT = "shut"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Width(Enum):
    NARROW = 1
    WIDE = 2


class Gate(
    Entity,
    name="choices.v1.Gate",
    key=Key("{tenant_id}", "{id}"),
    indexes=[
        Index("GSI1", "by_state", partition="{tenant_id}:{state}", sort="{level}#{side}#{before}"),
        Index("GSI2", "by_floor", partition="{tenant_id}:{floor}", sort="{width}"),
    ],
    registry=Registry(),
):
    tenant_id: str
    id: str
    state: State | None = State.OPEN
    level: Level = Level.LOW
    side: Literal["left", "right"] = "left"
    before: State = State.SHUT
    floor: Literal[1, 2] = 1
    width: Width = Width.NARROW


GOOD: list[dict[str, Any]] = [
    {"state": "open"},
    {"state": State.OPEN, "level": Level.LOW},
    {"state": "open", "level": 1, "side": "left"},
    {"state": "open", "level": "1", "side": "left", "before": "shut"},
    {"floor": 1, "width": Width.NARROW},
    {"floor": 1, "width": 1},
    {"floor": "1", "width": "1"},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"state": "OPEN"}, "state"),
    ({"state": "open", "level": "3"}, "level"),
    ({"state": "open", "level": "1", "side": "up"}, "side"),
    ({"state": "open", "level": "1", "side": "left", "before": "ajar"}, "before"),
    ({"floor": "3"}, "floor"),
]


@pytest.fixture
def db(transport: Transport, table: str) -> Dynashard:
    return Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.mark.parametrize("fields", GOOD, ids=str)
def test_a_choice_may_be_given_by_its_value(db: Dynashard, fields: dict[str, Any]) -> None:
    gates = db.collection(Gate)
    gates.create(Gate(tenant_id="abc", id="1"))

    assert [gate.id for gate in gates.list(tenant_id="abc", **fields)] == ["1"]


@pytest.mark.parametrize(("fields", "wrong"), WRONG, ids=str)
def test_a_value_that_is_none_is_refused_with_the_words_of_rest(
    db: Dynashard, transport: Transport, table: str, fields: dict[str, Any], wrong: str
) -> None:
    over_rest = caller_exposing(transport, table, Exposed(Gate, path="gates")).get("/v1/gates", query=fields)

    with pytest.raises(InvalidKeyError) as refused:
        db.collection(Gate).list(tenant_id="abc", **fields)

    [error] = over_rest.json["errors"]
    assert over_rest.status == 422
    assert (refused.value.field, str(refused.value)) == (wrong, f"{wrong}: {error['message']}")


def test_each_of_several_partitions_is_checked(db: Dynashard) -> None:
    partitions = [{"tenant_id": "abc", "state": state} for state in ("open", "ajar")]

    with pytest.raises(InvalidKeyError, match="state: Input should be 'open' or 'shut'"):
        db.collection(Gate).list(partitions, index="by_state")
