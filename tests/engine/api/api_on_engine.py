"""The API function on the real engine."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import uuid4

from dynashard import Dynashard, LeasedTopology, definition, schema
from dynashard.runtime import SYSTEM, Runtime
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from dynashard_serving.api.settings import Settings
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of
from tests.api_caller import Caller
from tests.direct_transport import direct_transport
from tests.domain_served import ENTITIES
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.topology.topology_world import create_topology_table
from tests.roles import as_function

KEYS = ("the-newest-cursor-key", "an-older-cursor-key")
TOPOLOGY = "dynashard-topology-of-the-api"


@contextmanager
def idempotency_table(dynamodb: RawDynamoDB) -> Iterator[str]:
    """Open an empty table of idempotency records."""
    name = f"dynashard-idempotency-{uuid4().hex}"
    dynamodb.call(
        "CreateTable",
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": schema.IDEMPOTENCY_KEY, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": schema.IDEMPOTENCY_KEY, "KeyType": "HASH"}],
    )
    yield name
    dynamodb.call("DeleteTable", TableName=name)


@contextmanager
def engine_transport(engine_url: str) -> Iterator[Transport]:
    """Open a transport to the engine, with the topology records of the API's entities written."""
    with closing(direct_transport(engine_url)) as transport:
        create_topology_table(transport, TOPOLOGY)
        for exposed in ENTITIES:
            # The first write of each record happens here, so that it does not count as a PutItem in a test's faults.
            LeasedTopology(transport, TOPOLOGY).view(definition(exposed.entity), "")
        yield transport


def settings_of(table: str, idempotency: str = "unused", **more: object) -> Settings:
    values = {"environment": "local", "cursor_keys": KEYS, "topology_table": TOPOLOGY, **more}
    return Settings(table=table, idempotency_table=idempotency, **values)  # type: ignore[arg-type]


def caller_exposing(transport: Transport, table: str, *exposed: Exposed) -> Caller:
    """Return a caller of an API that serves only these entities, with their declared counts."""
    transport = as_function("api", transport, table, TOPOLOGY)
    backend = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    return Caller(build_app(settings_of(table), transport, domain=domain_of(*exposed), backend=backend))


def caller_on(
    transport: Transport, table: str, idempotency: str = "unused", *, runtime: Runtime = SYSTEM, **more: object
) -> Caller:
    """Return a caller of a new API on this table, with the rights of its role."""
    allowed = as_function("api", transport, table, TOPOLOGY, idempotency)
    return Caller(build_app(settings_of(table, idempotency, **more), allowed, runtime=runtime))
