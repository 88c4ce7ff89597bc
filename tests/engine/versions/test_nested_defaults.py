"""Objects that were stored before their class got a member with a default can be changed in this member."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.dataclasses import dataclass

from dynashard import Dynashard, Entity, Key, Put, Registry, Update
from dynashard.codec import register_encoder
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.engine.api.api_on_engine import KEYS

pytestmark = pytest.mark.engine

KEY = {"tenant_id": "abc", "id": "h"}


class Roof(BaseModel, extra="forbid"):
    slope: int = 0


class OldHut(BaseModel, extra="forbid"):
    name: str


class NewHut(OldHut, extra="forbid"):
    roof: Roof = Roof()
    roofs: list[Roof] = []


@dataclass(config=ConfigDict(extra="forbid"))
class OldGate:
    wide: int


@dataclass(config=ConfigDict(extra="forbid"))
class NewGate:
    wide: int
    roof: Roof = Field(default_factory=Roof)
    other: Roof | None = None


register_encoder(OldGate, asdict)
register_encoder(NewGate, lambda gate: dict(gate.__dict__))


class OldCamp(Entity, name="camp.v1.Camp", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    hut: OldHut | None = None
    row: list[OldHut] = Field(default_factory=list)
    by: dict[str, OldHut] = Field(default_factory=dict)
    root: RootModel[OldHut] | None = None
    gate: OldGate | None = None


class NewCamp(Entity, name="camp.v1.Camp", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    hut: NewHut | None = None
    row: list[NewHut] = Field(default_factory=list)
    by: dict[str, NewHut] = Field(default_factory=dict)
    root: RootModel[NewHut] | None = None
    gate: NewGate | None = None


OLD: dict[str, Any] = {
    "hut": OldHut(name="a"),
    "row": [OldHut(name="a"), OldHut(name="b")],
    "by": {"x": OldHut(name="a")},
    "root": RootModel[OldHut](OldHut(name="a")),
    "gate": OldGate(1),
}
CHANGES: list[tuple[str, Any]] = [
    ("hut", NewHut(name="a", roof=Roof(slope=7))),
    ("hut", NewHut(name="a", roofs=[Roof(slope=7)])),
    ("row", [NewHut(name="a", roof=Roof(slope=7)), NewHut(name="b", roofs=[Roof()])]),
    ("by", {"x": NewHut(name="a", roof=Roof(slope=7))}),
    ("root", RootModel[NewHut](NewHut(name="a", roof=Roof(slope=7)))),
    ("gate", NewGate(1, Roof(slope=7), Roof(slope=8))),
]

Write = Callable[[Dynashard, str, Any], object]


def put_over(db: Dynashard, field: str, value: Any) -> object:
    read = db.collection(NewCamp).get(KEY, consistent=True)
    return db.collection(NewCamp).put(read.model_copy(update={field: value}), over=read)


def put(db: Dynashard, field: str, value: Any) -> object:
    return db.collection(NewCamp).put(NewCamp(**KEY, **{field: value}))


def update(db: Dynashard, field: str, value: Any) -> object:
    return db.collection(NewCamp).update(KEY, set={field: value})


def guarded(db: Dynashard, field: str, value: Any) -> object:
    return db.collection(NewCamp).update(KEY, set={field: value}, handling="guarded")


def put_in_a_transaction(db: Dynashard, field: str, value: Any) -> object:
    read = db.collection(NewCamp).get(KEY, consistent=True)
    return db.transact(Put(read.model_copy(update={field: value}), over=read))


def update_in_a_transaction(db: Dynashard, field: str, value: Any) -> object:
    return db.transact(Update(NewCamp, KEY, set={field: value}))


@pytest.fixture
def db(wire: Transport, table: str) -> Dynashard:
    return Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("field", "value"), CHANGES)
@pytest.mark.parametrize("write", [put_over, put, update, guarded, put_in_a_transaction, update_in_a_transaction])
def test_a_member_that_is_not_stored_can_be_changed(db: Dynashard, write: Write, field: str, value: Any) -> None:
    db.collection(OldCamp).create(OldCamp(**KEY, **OLD))

    write(db, field, value)

    assert getattr(db.collection(NewCamp).get(KEY, consistent=True), field) == value


def test_objects_that_lack_a_member_stay_as_they_are_if_others_change(db: Dynashard, wire: Transport) -> None:
    db.collection(OldCamp).create(OldCamp(**KEY, **OLD))

    put_over(db, "hut", NewHut(name="b"))

    [row] = wire.call("Scan", {"TableName": db.store.table})["Items"]
    assert row["hut"] == {"M": {"name": {"S": "b"}}}
    assert row["gate"] == {"M": {"wide": {"N": "1"}}}
