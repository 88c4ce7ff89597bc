"""The engine the tests of this folder run against: one for the session, in a folder that goes away with it."""

import os
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from dynashard import schema
from dynashard.transport import Transport, connect
from local.engine import Engine, running_engine
from local.settings import Settings
from tests.engine.raw_dynamodb import RawDynamoDB, raw_dynamodb
from tests.engine.stored_things import World


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The local engine on a free port, or the one that DYNAMODB_ENDPOINT names."""
    folder = tmp_path_factory.mktemp("engine")
    settings = Settings.from_env({**os.environ, "DATA_DIR": str(folder), "DYNAMODB_PORT": "0"})
    with running_engine(settings) as started:
        yield started


@pytest.fixture(scope="session")
def engine_url(engine: Engine) -> str:
    return engine.endpoint


@pytest.fixture(scope="session")
def dynamodb(engine_url: str) -> Iterator[RawDynamoDB]:
    with raw_dynamodb(engine_url) as connected:
        yield connected


@pytest.fixture(scope="session")
def create_table(dynamodb: RawDynamoDB) -> Iterator[Callable[[], str]]:
    """Creates an empty table in the stored format, with all its index slots, and gives its name."""
    names: list[str] = []

    def create() -> str:
        name = f"dynashard-test-{uuid4().hex}"
        indexes = [(slot, schema.index_pk(slot), schema.index_sk(slot)) for slot in schema.INDEX_SLOTS]
        attributes = [schema.PK, schema.SK, *(attribute for _, pk, sk in indexes for attribute in (pk, sk))]
        dynamodb.call(
            "CreateTable",
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in attributes],
            KeySchema=_key_schema(schema.PK, schema.SK),
            GlobalSecondaryIndexes=[
                {"IndexName": slot, "KeySchema": _key_schema(pk, sk), "Projection": {"ProjectionType": "ALL"}}
                for slot, pk, sk in indexes
            ],
        )
        names.append(name)
        return name

    yield create
    for name in names:
        dynamodb.call("DeleteTable", TableName=name)


@pytest.fixture
def table(create_table: Callable[[], str]) -> str:
    """An empty table of this test's own."""
    return create_table()


@pytest.fixture(scope="session")
def wire(engine_url: str) -> Iterator[Transport]:
    """The layer's own way to the engine."""
    opened = connect(engine_url, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
    yield opened
    opened.close()


@pytest.fixture
def world(wire: Transport, table: str, dynamodb: RawDynamoDB) -> World:
    """An empty table with people, notes and accounts, and with time in the test's hands."""
    return World(wire, table, dynamodb)


def _key_schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]
