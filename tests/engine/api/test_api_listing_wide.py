"""Listings over HTTP of partitions with many shards: every request fits what API Gateway takes."""

import string
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from dynashard import Dynashard
from dynashard.entity import Entity, Key, Registry, Shards
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_local.gateway.http_api import MAX_HEADER_BYTES
from dynashard_serving.declare import Exposed
from tests.api_caller import TENANT
from tests.engine.api.api_on_engine import KEYS, caller_exposing

pytestmark = pytest.mark.engine

TOKEN_BYTES = 2048
"""Room for the token and the other headers of a request."""


def reading_of(shards: int) -> Any:
    class Reading(
        Entity, name="wide.v1.Reading", key=Key("{tenant_id}", "{at}"), shards=Shards(shards), registry=Registry()
    ):
        tenant_id: str
        at: str

    return Reading


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shards", "length", "direction"), [(64, 27, "asc"), (256, 27, "asc"), (256, 1024, "desc"), (1024, 27, "asc")]
)
def test_a_round_robin_listing_over_many_shards_ends_complete(
    transport: Transport, table: str, shards: int, length: int, direction: str
) -> None:
    random = Random(length)
    keys = ["".join(random.choices(string.ascii_letters + string.digits, k=length)) for _ in range(600)]
    model = reading_of(shards)
    readings = [model(tenant_id=TENANT, at=key) for key in keys]
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    db.collection(model).batch_write(put=readings)
    caller = caller_exposing(transport, table, Exposed(model, path="readings"))
    listed: list[Any] = []

    path, query = "/v1/readings", f"limit=7&direction={direction}"
    while query:
        assert len(f"GET {path}?{query} HTTP/1.1") + TOKEN_BYTES <= MAX_HEADER_BYTES
        answer = caller.get(path, query=query)
        assert answer.status == 200, answer.content
        listed += answer.json["items"]
        query = urlsplit(answer.headers.get("link", "<>")[1:].split(">")[0]).query

    assert sorted(item["at"] for item in listed) == sorted(keys)
