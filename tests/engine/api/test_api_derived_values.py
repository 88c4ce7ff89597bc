"""Values over REST that a model derives from its fields."""

from enum import StrEnum
from functools import cached_property
from typing import Any

import pytest
from pydantic import BaseModel, computed_field

from dynashard import Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.access import ANYONE, Access
from dynashard_serving.declare import serve
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


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    return caller_exposing(transport, table, Order, Box, Paint)  # type: ignore[arg-type]


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

    put = caller.put("/v1/boxes/1", {**read, "label": "b", "size": {"width": 3}})

    assert (put.status, put.json["text"]) == (200, "b 3")


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
