"""Values over REST that a model derives from its fields."""

from functools import cached_property
from typing import Any

import pytest

from dynashard import Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.access import ANYONE, Access
from dynashard_serving.declare import serve
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing

pytestmark = pytest.mark.engine


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


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    return caller_exposing(transport, table, Order)  # type: ignore[arg-type]


def test_a_policy_sees_the_cached_properties_of_the_new_item(caller: Caller) -> None:
    caller.put("/v1/orders/1", {"price": 5})

    refused, accepted = caller.patch("/v1/orders/1", {"pieces": 3}), caller.patch("/v1/orders/1", {"pieces": 2})

    assert (refused.status, accepted.status) == (403, 200)
    assert caller.get("/v1/orders/1").json["pieces"] == 2
