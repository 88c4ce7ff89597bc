"""What every row needs: a local engine with a table, the canned server, and clients with equal settings."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from botocore.session import Session

from bench.canned import PAGE
from dynashard import Dynashard, LeasedTopology, schema
from dynashard.transport import Transport, connect
from dynashard.transport.sdk import SdkTransport
from local.engine import running_engine
from local.settings import Settings

TABLE: Final = "bench-table"
TOPOLOGY: Final = "bench-topology"
REGION: Final = "eu-west-1"
KEYS: Final = ("local", "local")
CANNED_DELAY_MS: Final = 5.0


@dataclass(frozen=True, slots=True)
class World:
    """The servers of a benchmark. The one at `canned_url` answers every request after `CANNED_DELAY_MS`."""

    engine_url: str
    canned_url: str

    def raw(self, url: str | None = None) -> Any:
        """Return botocore's low-level client with default settings, on the engine or on another `url`."""
        return Session().create_client(
            "dynamodb",
            region_name=REGION,
            endpoint_url=url or self.engine_url,
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
        )

    def db(self, transport: Transport) -> Dynashard:
        """Return the layer on the table through `transport`, with leased counts as in a deployment.

        The canned server has no topology records, so the declared counts are used there.
        """
        topology = LeasedTopology(transport, TOPOLOGY)
        return Dynashard(transport, table=TABLE, cursor_keys=["a secret of the benchmark"], topology=topology)

    def transport(self, url: str | None = None) -> SdkTransport:
        """Return the layer's transport, on the engine or on another `url`."""
        return connect(url or self.engine_url, REGION, access_key=KEYS[0], secret_key=KEYS[1])


@contextmanager
def world() -> Iterator[World]:
    """Start the servers, create the tables, and stop the servers at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="dynashard-bench-") as folder,
        running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)) as engine,
        canned_process() as canned_url,
    ):
        made = World(engine.endpoint, canned_url)
        create_tables(made)
        yield made


@contextmanager
def canned_process(*, per_shard: int = PAGE, delay_ms: float = CANNED_DELAY_MS) -> Iterator[str]:
    """Run the canned server in a process of its own, so that its CPU is not measured. Yields its URL."""
    command = [sys.executable, "-m", "bench.canned", "--delay", str(delay_ms), "--items", str(per_shard)]
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
    transport.call(
        "CreateTable",
        {
            "TableName": TOPOLOGY,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": schema.TOPOLOGY_KEY, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": schema.TOPOLOGY_KEY, "AttributeType": "S"}],
        },
    )
    transport.close()
