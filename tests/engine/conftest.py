"""The engine of the tests in this folder: one for the session, with its data in memory."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from domain.samples.users import User
from dynashard import schema
from dynashard.service import Collection
from dynashard.tables import ITEMS
from dynashard.transport import Transport
from dynashard_checks.schedules.wire import port_of_engine_in_memory
from dynashard_local.engine.process import Engine
from dynashard_local.engine.tables import engine_client, ensure_tables, table_plans
from dynashard_local.template import committed
from tests.direct_transport import direct_transport
from tests.engine.api.api_on_engine import engine_transport, idempotency_table
from tests.engine.command_line import CommandLine, users_of
from tests.engine.raw_dynamodb import RawDynamoDB, raw_dynamodb
from tests.engine.stored_things import World


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The local engine on a free port, or the one that DYNAMODB_ENDPOINT names."""
    if "DYNAMODB_ENDPOINT" in os.environ:
        yield Engine(os.environ["DYNAMODB_ENDPOINT"].rstrip("/"))
        return
    with port_of_engine_in_memory() as port:
        yield Engine(f"http://127.0.0.1:{port}")


@pytest.fixture(scope="session")
def engine_url(engine: Engine) -> str:
    return engine.endpoint


@pytest.fixture(scope="session")
def dynamodb(engine_url: str) -> RawDynamoDB:
    return raw_dynamodb(engine_url)


@contextmanager
def empty_table(dynamodb: RawDynamoDB) -> Iterator[str]:
    """Create a table with all index slots for the time of the block, and yield its name."""
    name = f"dynashard-test-{uuid4().hex}"
    dynamodb.call("CreateTable", **ITEMS.request(name, stream=False))
    yield name
    dynamodb.call("DeleteTable", TableName=name)


@pytest.fixture(scope="session")
def create_table(dynamodb: RawDynamoDB) -> Iterator[Callable[[], str]]:
    """Return a function that creates an empty table for the rest of the session, and returns its name."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(empty_table(dynamodb))
        if "DYNAMODB_ENDPOINT" not in os.environ:
            stack.pop_all()  # The engine of these tests ends with its tables.


@pytest.fixture
def table(dynamodb: RawDynamoDB) -> Iterator[str]:
    """An empty table of this test's own. The more tables the engine has, the longer it takes to create another."""
    with empty_table(dynamodb) as name:
        yield name


@pytest.fixture(scope="session")
def wire(engine_url: str) -> Iterator[Transport]:
    """The layer's connection to the engine."""
    with closing(direct_transport(engine_url)) as opened:
        yield opened


@pytest.fixture(scope="session")
def transport(engine_url: str) -> Iterator[Transport]:
    """A connection to the engine, where the API's entities have their topology records."""
    with engine_transport(engine_url) as opened:
        yield opened


@pytest.fixture
def records(dynamodb: RawDynamoDB) -> Iterator[str]:
    """An empty table of idempotency records of this test's own."""
    with idempotency_table(dynamodb) as name:
        yield name


@pytest.fixture
def world(wire: Transport, table: str, dynamodb: RawDynamoDB) -> World:
    """An empty table with people, notes and accounts, and with time in the test's hands."""
    return World(wire, table, dynamodb)


@pytest.fixture(scope="session")
def local_table(engine_url: str) -> str:
    """The table of `make run` in the session's engine, without its stream. Each test uses its own tenants.

    The engine needs time for each write in proportion to the records of the table's stream. Nothing here reads them.
    """
    plans = [replace(plan, create=_without_stream(plan.create)) for plan in table_plans(committed())]
    ensure_tables(engine_client(engine_url), plans, data="the session's engine")
    [name] = [plan.name for plan in plans if schema.PK in str(plan.create["KeySchema"]) and plan.ttl_attribute]
    return name


@pytest.fixture(scope="session")
def topology_table(local_table: str) -> str:
    """The topology table of `make run` in the session's engine."""
    assert local_table
    wanted = [{"AttributeName": schema.TOPOLOGY_KEY, "KeyType": "HASH"}]
    [name] = [plan.name for plan in table_plans(committed()) if plan.create["KeySchema"] == wanted]
    return name


@pytest.fixture
def command_line(
    engine_url: str,
    local_table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> CommandLine:
    """The command line, with the variables of `make run` for this engine."""
    assert local_table
    environment = {"DYNAMODB_ENDPOINT": engine_url, "DATA_DIR": str(tmp_path / "data")}
    return CommandLine(tmp_path, environment, monkeypatch, capsys)


@pytest.fixture
def users(wire: Transport, local_table: str) -> Collection[User]:
    """The users of the table of `make run`."""
    return users_of(wire, local_table)


@pytest.fixture
def tenant() -> str:
    """A tenant of this test's own."""
    return uuid4().hex


def _without_stream(create: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in create.items() if name != "StreamSpecification"}
