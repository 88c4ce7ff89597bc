"""Entities and a repository for tests of single items and batches, which control time and revisions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from pydantic import Field, model_validator

from dynashard import (
    Collection,
    Entity,
    EntityDefinition,
    Index,
    Key,
    Registry,
    RetryPolicy,
    Shards,
    created_at,
    new_id,
    updated_at,
)
from dynashard.errors import ThrottledError
from dynashard.reads import CursorCodec
from dynashard.repository import Store
from dynashard.routing import Router
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK
from dynashard.testing.faults import Fault, FaultyTransport
from dynashard.topology import DeclaredTopology, View
from dynashard.transactions import Step, Transaction
from dynashard.transactions.single_writes import TransactedWrites
from dynashard.transport import Transport
from tests.engine.raw_dynamodb import RawDynamoDB

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
REGISTRY = Registry()
CURSORS = CursorCodec(["a secret of the tests, for cursors"])


class Person(
    Entity,
    name="test.v1.Person",
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(4),
    indexes=[
        Index("GSI1", "by_mail", partition="{tenant}", sort="{mail}"),
        Index("GSI2", "by_team", partition="{tenant}:{team}", sort="{rank:03d}", shards=Shards(2)),
        Index("GSI3", "by_change", partition="{tenant}", sort="{changed}"),
    ],
    expires="until",
    registry=REGISTRY,
):
    tenant: str
    id: str = new_id()
    mail: str
    team: str | None = None
    rank: int | None = None
    visits: int = 0
    credit: Decimal = Decimal(0)
    tags: set[str] | None = None
    nickname: str | None = "none yet"
    made: datetime = created_at()
    changed: datetime = updated_at()
    until: datetime | None = None


class Note(Entity, name="test.v1.Note", key=Key(partition="{tenant}", sort="{id}"), registry=REGISTRY):
    """An unsharded entity without stamps and expiry."""

    tenant: str
    id: str
    text: str = ""
    reads: int = 0
    stars: int = Field(0, ge=0, le=5)
    labels: set[str] = Field(default_factory=set)


class Account(Entity, name="test.v1.Account", key=Key(partition="{id}"), registry=REGISTRY):
    """An entity with bounds on a field and a validator of the whole."""

    id: str
    balance: int = Field(0, ge=0)
    low: int = 0
    high: int = 0

    @model_validator(mode="after")
    def ordered(self) -> "Account":
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


@dataclass
class Clock:
    """A clock in epoch seconds that stands still until it is set."""

    at: float = NOON.timestamp()

    def __call__(self) -> float:
        return self.at

    def time(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


class Event(
    Entity,
    name="test.v1.Event",
    key=Key(partition="{tenant}", sort="{id}"),
    shards=Shards(4, placement="random"),
    indexes=[Index("GSI1", "by_kind", partition="{tenant}", sort="{kind}")],
    registry=REGISTRY,
):
    """An entity with random placement."""

    tenant: str
    id: str
    kind: str = "any"
    seen: int = 0


class Views(DeclaredTopology):
    """Returns the view that the test has set for every logical partition, or the declared one.

    Attributes:
        now: the view in force.
        fresh: the view that comes into force when somebody asks for a fresh one.
        refreshed: the logical partitions for which somebody has asked for a fresh one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now: View | None = None
        self.fresh: View | None = None
        self.refreshed: list[str] = []

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        return self.now or super().view(entity, partition)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        super().refresh(entity, partition)
        self.refreshed.append(partition)
        self.now = self.fresh or self.now


@dataclass
class World:
    """A table with a transport and a clock, repositories on it, and its raw items."""

    inner: Transport
    table: str
    dynamodb: RawDynamoDB
    clock: Clock = field(default_factory=Clock)
    pauses: list[float] = field(default_factory=list)
    retry_seconds: float = 20.0
    views: Views = field(default_factory=Views)
    drawn: Callable[[], float] = lambda: 0.0
    batch_concurrency: int = 1
    throttles: list[tuple[str, str | None, ThrottledError]] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = count(1)
        self.new_revision: Callable[[], str] = lambda: f"rev-{next(numbers)}"
        self.transport: FaultyTransport = FaultyTransport(self.inner)

    def faults(self, *plan: Fault) -> FaultyTransport:
        """Set the faults that later requests meet, and return their transport."""
        self.transport = FaultyTransport(self.inner, plan)
        return self.transport

    def of(self, model: type[Any]) -> Collection[Any]:
        """Return a collection on the current transport."""
        return Collection(self.store, CURSORS, model)

    @property
    def store(self) -> Store:
        """The store of the table on the current transport."""
        waited = Clock(0)

        def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            waited.at += seconds

        retry_policy = RetryPolicy(
            seconds=self.retry_seconds, runtime=Runtime(monotonic=waited, sleep=sleep, random=lambda: 0.5)
        )
        return Store(
            self.transport,
            self.table,
            Router(self.views),
            TransactedWrites,
            Runtime(self.clock, random=self.drawn),
            lambda wanted: [self.new_revision() for _ in range(wanted)],
            retry_policy,
            throttled=lambda entity, partition, error: self.throttles.append((entity.name, partition, error)),
            batch_concurrency=self.batch_concurrency,
        )

    def transact(self, *steps: Step) -> list[Any]:
        """Send a transaction on the current transport."""
        return Transaction(self.store, steps).run()

    @property
    def people(self) -> Collection[Person]:
        return self.of(Person)

    @property
    def notes(self) -> Collection[Note]:
        return self.of(Note)

    @property
    def events(self) -> Collection[Event]:
        return self.of(Event)

    @property
    def accounts(self) -> Collection[Account]:
        return self.of(Account)

    def raw(self) -> list[dict[str, Any]]:
        """Return all stored items, expired ones included."""
        items: list[dict[str, Any]] = self.dynamodb.call("Scan", TableName=self.table, ConsistentRead=True)["Items"]
        return items

    def only(self) -> dict[str, Any]:
        """Return the only stored item."""
        [item] = self.raw()
        return item

    def adopt(self, item: dict[str, Any]) -> None:
        """Store an item as another writer than this layer does."""
        self.dynamodb.call("PutItem", TableName=self.table, Item=item)

    def entries(self, slot: str) -> list[tuple[str, str]]:
        """Return the stored keys of an index."""
        found = self.dynamodb.call("Scan", TableName=self.table, IndexName=slot)["Items"]
        return sorted((item[f"{slot}PK"]["S"], item[f"{slot}SK"]["S"]) for item in found)


def person(**fields: Any) -> Person:
    return Person(**{"tenant": "abc", "id": "1", "mail": "ada@example.com", **fields})


def key(identity: str = "1") -> dict[str, str]:
    return {"tenant": "abc", "id": identity}


def places(items: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((item[PK]["S"], item[SK]["S"]) for item in items)
