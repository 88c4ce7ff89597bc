"""Topology tables on the engine, an entity, and a clock that the test sets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dynashard import Entity, EntityDefinition, Index, Key, Registry, Shards, definition
from dynashard.entity import IndexDefinition
from dynashard.errors import EngineError
from dynashard.runtime import Runtime
from dynashard.tables import TOPOLOGY
from dynashard.topology import LeasedTopology, Record
from dynashard.topology.records import encode
from dynashard.transport import Transport

FAMILY = "topology.v1.Thing"
INDEX = f"{FAMILY}|GSI1"
ONE, OTHER = f"{FAMILY}:one", f"{FAMILY}:other"
"""Two logical partitions."""


def thing(shards: Shards | None = Shards(8), index_shards: Shards | None = Shards(4)) -> EntityDefinition[Any]:  # noqa: B008 - frozen
    """Return an entity with a sharded index and a bare one, declared with these counts."""

    class Thing(
        Entity,
        name=FAMILY,
        key=Key("{tenant}", "{id}"),
        shards=shards,
        indexes=[
            Index("GSI1", "by_rank", "{tenant}", "{rank}", shards=index_shards),
            Index("GSI2", "by_name", "{tenant}", "{name}"),
        ],
        registry=Registry(),
    ):
        tenant: str
        id: str
        rank: str | None = None
        name: str | None = None

    return definition(Thing)


THING = thing()


def by_rank(entity: EntityDefinition[Any] = THING) -> IndexDefinition:
    """Return the sharded index."""
    return entity.indexes["by_rank"]


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now: float = 1_780_000_000.0

    def __call__(self) -> float:
        return self.now


def one_clock(clock: Callable[[], float]) -> Runtime:
    """Return a runtime that uses one clock as wall clock and monotonic clock."""
    return Runtime(clock=clock, monotonic=clock)


def create_topology_table(transport: Transport, name: str) -> None:
    """Create a topology table unless it exists."""
    try:
        transport.call(
            "CreateTable",
            # The engine needs time for each write in proportion to the records of a stream.
            TOPOLOGY.request(name, stream=False),
        )
    except EngineError as error:
        if error.aws_code != "ResourceInUseException":
            raise


@contextmanager
def topology_table_on(transport: Transport) -> Iterator[str]:
    """Create an empty topology table, and delete it after the block."""
    name = f"dynashard-topology-{uuid4().hex}"
    create_topology_table(transport, name)
    yield name
    transport.call("DeleteTable", {"TableName": name})


def leased(transport: Transport, table: str, clock: Clock, lease: float = 30.0) -> LeasedTopology:
    """Return a client of a topology table on one clock."""
    return LeasedTopology(transport, table, lease=lease, runtime=one_clock(clock))


def put_by_hand(transport: Transport, table: str, record: Record) -> None:
    """Store a record unconditionally."""
    transport.call("PutItem", {"TableName": table, "Item": encode(record)})
