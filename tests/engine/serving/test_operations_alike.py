"""One request has one outcome, over REST, by direct invocation and through the queues.

`operations_table` has the requests. Each is sent over all its entry points, and a write to its own tenant.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dynashard.transport import Transport, connect
from tests.engine.api.api_on_engine import idempotency_table
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.serving.operations_table import ROWS, STORED, Row
from tests.engine.serving.operations_ways import WRITES, Outcome, World, leaves, plain
from tests.engine.writer.queue_world import QueueWorld

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module", params=["direct", pytest.param("botocore", marks=pytest.mark.deep)])
def wire(request: pytest.FixtureRequest, transport: Transport, engine_url: str) -> Iterator[Transport]:
    """The direct transport, and in deep runs botocore's."""
    if request.param == "direct":
        yield transport
        return
    with closing(connect(engine_url, "us-east-1", access_key="local", secret_key="local")) as botocore:  # noqa: S106
        yield botocore


@pytest.fixture(scope="module")
def world(
    wire: Transport,
    create_table: Callable[[], str],
    dynamodb: RawDynamoDB,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    with idempotency_table(dynamodb) as records:
        queues = QueueWorld(wire, create_table(), Path(tmp_path_factory.mktemp("queues")))
        queues.idempotency = records
        opened = World(queues)
        for name, items in STORED.items():
            opened.store(name, items)
        yield opened


def ways_of(row: Row) -> list[str]:
    """Return the entry points of a request."""
    return ["ask", "invoke", *(["leave"] if leaves(row.entity, row.operation) else [])]


def came_of(world: World, row: Row, way: str, tenant: str) -> tuple[Outcome, Any]:
    """Send a request over an entry point, and return its outcome and the item that is stored then."""
    world.store(tenant, row.given)
    send = getattr(world, way)
    for operation, members in row.before:
        send(tenant, row.entity, operation, world.with_revision(tenant, row.entity, members))
    members = world.with_revision(tenant, row.entity, row.members)
    outcome = send(tenant, row.entity, row.operation, members)
    result = Outcome(plain(outcome.result, members), outcome.code, outcome.fields)
    if row.operation not in WRITES:
        return result, None
    return result, plain(world.stored(tenant, row.entity, members), members)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.entity} {row.operation} {row.name}")
def test_a_request_has_the_same_outcome_over_every_entry_point(world: World, row: Row) -> None:
    number = ROWS.index(row)
    ways = ways_of(row)
    found = {way: came_of(world, row, way, row.stored or f"{way}{number}") for way in ways}

    for way, (outcome, _) in found.items():
        code, fields = row.expected(way)
        assert (outcome.code, outcome.fields) == (code, fields), way
    results = {way: found[way][0].result for way in ways if way != "leave" and row.expected(way)[0] is None}
    first = next(iter(results.values()), None)
    assert all(result == first for result in results.values()), results
    assert all(stored == found["invoke"][1] for _, stored in found.values()), found
    if results:
        row.check(first, found["invoke"][1])


def test_the_table_covers_every_operation() -> None:
    assert len(ROWS) >= 150
    assert len({(row.entity, row.operation, row.name) for row in ROWS}) == len(ROWS)
    operations = {"create", "get", "put", "update", "delete", "list", "count", "batch_get", "batch_write"}
    assert {row.operation for row in ROWS} == operations
    assert sum(row.code is not None for row in ROWS) > len(ROWS) / 3
    assert sum("leave" in ways_of(row) for row in ROWS) > len(ROWS) / 3
