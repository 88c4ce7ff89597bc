"""Many callers at once ask for pages of large items: each gets an answer, in time, for about what it returns."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier, Lock
from typing import Any

import pytest

from dynashard import Dynashard
from dynashard.entity import Entity, Key, Registry, Shards
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard.transport.interface import Call, Resend, Wire
from dynashard_serving.declare import Exposed
from tests.api_caller import TENANT
from tests.depth import profile
from tests.engine.api.api_on_engine import KEYS, caller_exposing

pytestmark = pytest.mark.engine

CALLERS = 32 if profile() == "deep" else 6
LIMIT, ITEM_BYTES, BLOCK_BYTES = 20, 300_000, 8192
"""A page is 6.0 MB, of the 6.3 MB that a function can answer; a block of two reads takes a unit."""


class Paper(Entity, name="large.v1.Paper", key=Key("{tenant_id}", "{id}"), shards=Shards(16), registry=Registry()):
    tenant_id: str
    id: str
    text: str


class Metered(OneByOne):
    """A transport that adds up the read units of Queries."""

    def __init__(self, inner: Transport) -> None:
        self.inner, self.units, self._lock = inner, 0.0, Lock()

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        return self.inner.call(operation, request, resend=resend)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        answers = self.inner.call_all(calls, concurrency=concurrency)
        with self._lock:
            self.units += sum(answer["ConsumedCapacity"]["CapacityUnits"] for answer in answers)
        return answers


def test_callers_at_once_each_get_a_page_in_time_for_about_what_it_returns(transport: Transport, table: str) -> None:
    random, metered, together = Random(1), Metered(transport), Barrier(CALLERS)
    ids = sorted(f"{random.random():.15f}" for _ in range(60))
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    papers = [Paper(tenant_id=TENANT, id=each, text="x" * (ITEM_BYTES - 200)) for each in ids]
    db.collection(Paper).batch_write(put=papers, whole=True)
    caller = caller_exposing(metered, table, Exposed(Paper, path="papers"))

    def page(_: int) -> Any:
        together.wait()
        # A request that is not answered within the function's time is answered 503.
        answer = caller.get("/v1/papers", query=f"order=ordered&limit={LIMIT}")
        assert answer.status == 200, answer.content
        return [item["id"] for item in answer.json["items"]], answer.json["cursor"]

    with ThreadPoolExecutor(CALLERS) as pool:
        pages = list(pool.map(page, range(CALLERS)))

    # A page whose time is over ends short.
    assert all(found == ids[: len(found)] and cursor for found, cursor in pages)
    assert max(len(found) for found, _ in pages) == LIMIT
    # 35 items are the least: the page, and the next item of nearly each shard.
    assert metered.units / CALLERS <= 2.3 * LIMIT * ITEM_BYTES / BLOCK_BYTES
