"""Values over REST that a model derives from its fields."""

from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    ValidationInfo,
    computed_field,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass

from dynashard import Entity, Key, Registry
from dynashard.codec import register_encoder
from dynashard.transport import Transport
from dynashard_serving.access import ANYONE, Access
from dynashard_serving.declare import Exposed, serve
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

_JSON_PATCH = {"content-type": "application/json-patch+json"}


def _is_small(_caller: Any, _operation: str, item: Any) -> bool:
    return bool(item.total <= 10)


@serve(path="orders", access=Access(read=ANYONE, write=ANYONE, policy=_is_small))
class Order(Entity, name="derived.v1.Order", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    price: int
    pieces: int = 1

    @cached_property
    def total(self) -> int:
        """What a policy looks at."""
        return self.price * self.pieces


class Size(BaseModel, extra="forbid"):
    width: int = 1

    @computed_field
    def doubled(self) -> int:
        """Twice the width."""
        return 2 * self.width


@serve(path="boxes")
class Box(Entity, name="derived.v1.Box", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    label: str | None = None
    size: Size = Size()

    @computed_field
    def text(self) -> str:
        """What is printed on it."""
        return f"{self.label} {self.size.width}"


class Circle(BaseModel, extra="forbid"):
    kind: Literal["circle"] = "circle"
    radius: int = 1

    @computed_field
    def area(self) -> int:
        """Three times its square."""
        return 3 * self.radius**2


class Place(BaseModel, extra="forbid"):
    """A shape with a field that another one computes."""

    kind: Literal["place"] = "place"
    area: int = 1


class Sheet(BaseModel, extra="forbid"):
    height: int = 1

    @computed_field
    def sides(self) -> int:
        """Always two."""
        return 2


@dataclass(config=ConfigDict(extra="forbid"))
class Label:
    text: str = ""
    size: Size = Field(default_factory=Size)

    @computed_field
    def letters(self) -> int:
        """How long it is."""
        return len(self.text)


register_encoder(Label, lambda label: {"text": label.text, "size": label.size})


class Nest(BaseModel, extra="forbid"):
    inner: "Nest | None" = None

    @computed_field
    def depth(self) -> int:
        """How many are inside."""
        return 0 if self.inner is None else 1 + self.inner.depth  # type: ignore[operator]


class Checked(BaseModel, extra="forbid"):
    low: int = 0

    @computed_field
    def high(self) -> int:
        """One more."""
        return self.low + 1

    @model_validator(mode="after")
    def positive(self) -> "Checked":
        return self


class Sizes(RootModel[list[Size]]):
    """A list of its own."""


@serve(path="crates")
class Crate(Entity, name="derived.v1.Crate", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An item with models in all places."""

    tenant_id: str
    id: str
    note: str = ""
    several: tuple[Size, ...] = ()
    pair: tuple[Size, Sheet] = (Size(), Sheet())
    by_name: dict[str, Size] = Field(default_factory=dict)
    maybe: Size | None = None
    either: Size | Sheet | None = None
    tagged: Annotated[Circle | Place, Field(discriminator="kind")] = Circle()
    untagged: Circle | Place = Circle()
    label: Label = Label()
    nest: Nest = Nest()
    checked: Checked = Checked()
    sizes: Sizes = Sizes([])
    counts: dict[str, int] | Size = Size()
    listed: list[Size] = Field(default_factory=list)


FULL: dict[str, Any] = {
    "several": [{"width": 2}, {"width": 3}],
    "by_name": {"a": {"width": 4}},
    "maybe": {"width": 5},
    "either": {"height": 6},
    "tagged": {"kind": "circle", "radius": 7},
    "untagged": {"kind": "place", "area": 8},
    "label": {"text": "ab", "size": {"width": 11}},
    "nest": {"inner": {"inner": {}}},
    "sizes": [{"width": 9}],
    "listed": [{"width": 9}],
    "counts": {"doubled": 10},
}


class Shade(StrEnum):
    DARK = "dark"


@serve(path="paints")
class Paint(Entity, name="derived.v1.Paint", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    name: str = ""
    shade: Shade = Shade.DARK

    def model_post_init(self, _context: Any, /) -> None:
        self.name.upper()


def _is_anybodys(_caller: Any, _operation: str, _item: Any) -> bool:
    return True


class Trip(Entity, name="derived.v1.Trip", key=Key("{tenant_id}", "{id}"), unique="code", registry=Registry()):
    """An item whose validators and defaults take other fields."""

    tenant_id: str
    id: str
    code: str
    begin: int
    end: int
    days: int = Field(default_factory=lambda data: data["end"] - data["begin"])

    @field_validator("end")
    @classmethod
    def ordered(cls, end: int, info: ValidationInfo) -> int:
        begin: int = info.data.get("begin", 1000)
        return max(end, begin)


class Visit(Trip, name="derived.v1.Visit", key=Key("{tenant_id}", "{id}"), unique="code", registry=Registry()):
    """The same, of which a policy sees each item."""


_TRIPS = Exposed(Trip, path="trips")
_VISITS = Exposed(Visit, path="visits", access=Access(read=ANYONE, write=ANYONE, policy=_is_anybodys))


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    return caller_exposing(transport, table, Order, Box, Crate, Paint, _TRIPS, _VISITS)  # type: ignore[arg-type]


def test_a_policy_sees_the_cached_properties_of_the_new_item(caller: Caller) -> None:
    caller.put("/v1/orders/1", {"price": 5})

    refused, accepted = caller.patch("/v1/orders/1", {"pieces": 3}), caller.patch("/v1/orders/1", {"pieces": 2})

    assert (refused.status, accepted.status) == (403, 200)
    assert caller.get("/v1/orders/1").json["pieces"] == 2


def test_an_item_with_computed_fields_is_patched(caller: Caller) -> None:
    caller.put("/v1/boxes/1", {})

    caller.patch("/v1/boxes/1", {"label": "a", "text": "ignored"})
    caller.patch("/v1/boxes/1", {"size": {"width": 2}})
    patched = caller.patch("/v1/boxes/1", [{"op": "replace", "path": "/label", "value": "b"}], headers=_JSON_PATCH)

    assert patched.status == 200
    assert (patched.json["text"], patched.json["size"]) == ("b 2", {"width": 2, "doubled": 4})


def test_what_a_get_has_answered_can_be_put(caller: Caller) -> None:
    caller.put("/v1/boxes/1", {"label": "a"})
    read = caller.get("/v1/boxes/1").json

    put = caller.put("/v1/boxes/1", {**read, "label": "b", "size": {**read["size"], "width": 3}})

    assert (put.status, put.json["text"], put.json["size"]) == (200, "b 3", {"width": 3, "doubled": 6})


def _patched(caller: Caller, document: dict[str, Any]) -> Any:
    return caller.patch("/v1/crates/1", document)


def _patched_by_operations(caller: Caller, document: dict[str, Any]) -> Any:
    operations = [{"op": "replace", "path": f"/{name}", "value": document[name]} for name in (*FULL, "pair", "note")]
    return caller.patch("/v1/crates/1", operations, headers=_JSON_PATCH)


@pytest.mark.parametrize(
    "write", [lambda caller, document: caller.put("/v1/crates/1", document), _patched, _patched_by_operations]
)
def test_what_models_compute_inside_of_fields_is_ignored(caller: Caller, write: Callable[..., Any]) -> None:
    read = caller.put("/v1/crates/1", FULL).json

    written = write(caller, {**read, "note": "changed"})

    assert written.status == 200, written.content
    assert {**written.json, "note": "", "revision": read["revision"]} == read
    assert read["nest"] == {"inner": {"inner": {"inner": None, "depth": 0}, "depth": 1}, "depth": 2}
    assert (read["untagged"]["area"], read["counts"]) == (8, {"doubled": 10})


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ({"several": [{"width": 1, "tripled": 3}]}, {"several.0.tripled": "extra_forbidden"}),
        ({"maybe": {"width": "x", "doubled": 3}}, {"maybe.width": "int_type"}),
        ({"pair": [{"sides": 2}, {}]}, {"pair.0.sides": "extra_forbidden"}),
        ({"several": [[{"doubled": 2}]]}, {"several.0": "model_type"}),
    ],
)
def test_other_members_are_refused_as_before(caller: Caller, sent: dict[str, Any], fields: dict[str, str]) -> None:
    assert caller.put("/v1/crates/1", sent).fields == fields
    assert caller.post("/v1/crates", {"id": "1", "maybe": {"doubled": 2}}).fields == {
        "maybe.doubled": "extra_forbidden"
    }


@pytest.mark.parametrize(
    ("operation", "width"),
    [
        ({"op": "test", "path": "/text", "value": "a 2"}, 2),
        ({"op": "test", "path": "/size", "value": {"width": 2, "doubled": 4}}, 2),
        ({"op": "copy", "from": "/size/doubled", "path": "/size/width"}, 4),
        ({"op": "replace", "path": "/size/doubled", "value": 7}, 2),
        ({"op": "remove", "path": "/size/doubled"}, 2),
    ],
)
def test_the_paths_of_a_json_patch_are_those_of_what_a_get_answers(
    caller: Caller, operation: dict[str, Any], width: int
) -> None:
    caller.put("/v1/boxes/1", {"label": "a", "size": {"width": 2}})

    patched = caller.patch("/v1/boxes/1", [operation], headers=_JSON_PATCH)

    assert (patched.status, patched.json["size"]) == (200, {"width": width, "doubled": 2 * width})


def test_a_create_does_not_set_what_is_computed(caller: Caller) -> None:
    assert caller.post("/v1/boxes", {"id": "1", "text": "x"}).fields == {"text": "read_only"}


def test_some_fields_are_read_of_an_item_that_looks_at_all_when_it_is_made(
    caller: Caller, dynamodb: RawDynamoDB, table: str
) -> None:
    caller.put("/v1/paints/1", {"name": "a"})
    [stored] = dynamodb.call("Scan", TableName=table)["Items"]
    dynamodb.call("PutItem", TableName=table, Item={**stored, "shade": {"S": "of a later release"}})

    one, many = caller.get("/v1/paints/1", query="fields=id,shade"), caller.get("/v1/paints", query="fields=id,shade")

    assert (one.status, one.json) == (200, {"id": "1", "shade": "of a later release"})
    assert many.json["items"] == [one.json]


@pytest.mark.parametrize("path", ["trips", "visits"])
@pytest.mark.parametrize("fields", ["end", "days", "end,days,begin"])
def test_fields_that_follow_others_are_those_of_the_whole_item(
    caller: Caller, dynamodb: RawDynamoDB, table: str, path: str, fields: str
) -> None:
    caller.put(f"/v1/{path}/1", {"code": "a", "begin": 2, "end": 7})
    for stored in dynamodb.call("Scan", TableName=table)["Items"]:
        # As it was before the field was declared.
        dynamodb.call("PutItem", TableName=table, Item={n: value for n, value in stored.items() if n != "days"})
    whole = caller.get(f"/v1/{path}/1").json

    one = caller.get(f"/v1/{path}/1", query={"fields": fields})
    queries: tuple[dict[str, str], ...] = ({}, {"order": "ordered"}, {"code": "a"})
    many = [caller.get(f"/v1/{path}", query={"fields": fields, **query}) for query in queries]

    assert (whole["end"], whole["days"]) == (7, 5)
    assert one.json == {name: whole[name] for name in fields.split(",")}
    assert [answer.json["items"] for answer in many] == [[one.json]] * len(queries)
