"""What every row needs: a local engine with a table, the canned server, and clients with equal settings."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dynashard import Dynashard, schema
from dynashard.transport import Transport, connect
from dynashard_lab.bench.clients.layer import opened
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.stored import KEYS, PAGE, REGION, SHARDS, TABLE, TOPOLOGY
from dynashard_local.engine.process import running_engine
from dynashard_local.settings import Settings


@dataclass(frozen=True, slots=True)
class World:
    """The local engine of a benchmark, and whether long comparisons are wanted."""

    engine_url: str
    deep: bool = False

    def db(self, transport: Transport) -> Dynashard:
        """Return the layer on the table through `transport`, with leased counts as in a deployment."""
        return opened(transport)

    def transport(self, url: str | None = None) -> Transport:
        """Return the layer's transport on botocore, on the engine or on another `url`."""
        return connect(url or self.engine_url, REGION, transport="botocore", access_key=KEYS[0], secret_key=KEYS[1])


@contextmanager
def world(*, deep: bool = False) -> Iterator[World]:
    """Start the engine, create the tables, and stop the engine at the end of the block.

    The engine runs on the processor of clients that may use one, so that waking each other costs the same each time.
    """
    with tempfile.TemporaryDirectory(prefix="dynashard-bench-") as folder, ExitStack() as stack:
        with processors(1):
            engine = stack.enter_context(running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)))
        made = World(engine.endpoint, deep)
        create_tables(made)
        yield made


@contextmanager
def canned_process(
    *, per_shard: int = PAGE, delay_ms: float = 0.0, shards: int = SHARDS, padding: int = 0
) -> Iterator[str]:
    """Run the canned server in a process of its own, so that its CPU is not measured, and yield its URL.

    Args:
        per_shard: items of each shard.
        delay_ms: milliseconds before every answer.
        shards: how many shards the items are spread over.
        padding: bytes that each item is larger than a plain user.
    """
    options = {"delay": delay_ms, "items": per_shard, "shards": shards, "padding": padding}
    command = [
        sys.executable,
        "-m",
        "dynashard_lab.bench.canned",
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    with subprocess.Popen(  # noqa: S603 - this checkout's own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None  # noqa: S101 - asked for as a pipe above
        assert process.stdout is not None  # noqa: S101 - asked for as a pipe above
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def create_tables(made: World) -> None:
    """Create tables with the keys and indexes of the deployed ones; see `dynashard.schema`."""
    keys = [(schema.PK, schema.SK)]
    keys += [(schema.index_pk(slot), schema.index_sk(slot)) for slot in schema.INDEX_SLOTS]
    schemas = [[{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}] for pk, sk in keys]
    transport = made.transport()
    transport.call(
        "CreateTable",
        {
            "TableName": TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": schemas[0],
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for pair in keys for name in pair],
            "GlobalSecondaryIndexes": [
                {"IndexName": slot, "KeySchema": keys_of, "Projection": {"ProjectionType": "ALL"}}
                for slot, keys_of in zip(schema.INDEX_SLOTS, schemas[1:], strict=True)
            ],
        },
    )
    create_topology_table(transport, TOPOLOGY)
    transport.close()


def create_topology_table(transport: Transport, name: str) -> None:
    """Create an empty table of shard counts."""
    transport.call(
        "CreateTable",
        {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": schema.TOPOLOGY_KEY, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": schema.TOPOLOGY_KEY, "AttributeType": "S"}],
        },
    )
