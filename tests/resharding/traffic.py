"""What the clients of a schedule share: their keys, kinds of operations, pace, and times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Protocol

from dynashard import EntityDefinition
from dynashard.entity import IndexDefinition
from dynashard.topology import Topology, View
from tests.resharding.database import Database
from tests.resharding.history import Key
from tests.resharding.operations import Session
from tests.resharding.scheduler import Actor, Scheduler

LEASE: Final = 30.0
OPERATION: Final = 30.0
SKEW: Final = 1.0
_WRITES: Final = ("create", "put", "update", "delete", "batch_write")
_READS: Final = ("get", "exists", "batch_get")
_LISTS: Final = ("page", "page", "page", "scan", "count")


class LookedTopology:
    """A topology that notes when its actor looks at it: what is sent thereafter rests on that."""

    def __init__(self, inner: Topology, actor: Actor, scheduler: Scheduler) -> None:
        self._inner = inner
        self._actor = actor
        self._scheduler = scheduler

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """See `Topology.view`."""
        self._actor.looked = self._scheduler.now
        return self._inner.view(entity, partition)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """See `Topology.index_view`."""
        self._actor.looked = self._scheduler.now
        return self._inner.index_view(entity, index)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """See `Topology.refresh`."""
        self._inner.refresh(entity, partition)


Kinds = tuple[Sequence[str], Sequence[str]]
"""What writers do, and what readers do."""


class Pace(Protocol):
    """When clients act."""

    def among(self, actor: Actor, operations: int) -> Iterator[bool]:
        """The turns for a few operations; whether they are those of someone who looks at the topology early."""
        ...

    def rest(self, actor: Actor) -> bool:
        """Rest for a while; whether to go on then."""
        ...


@dataclass
class Traffic:
    """What the clients of a schedule share.

    Attributes:
        keys: the keys they use.
        model: the entity.
        kinds: operations to choose from.
        indexes: what listings list; None for the table.
        scattered: whether each key may be created once only: random placement.
        mortal: whether all items expire: random shards are given up when they are empty.
        expiring: whether some do.
        sessions: listings that have not ended.
        listings: how many have.
        gave_up: operations that ended in a retryable error.
    """

    database: Database
    model: type[Any]
    keys: tuple[Key, ...]
    kinds: Kinds
    indexes: Sequence[str | None]
    scattered: bool = False
    mortal: bool = False
    expiring: bool = True
    sessions: list[Session] = field(default_factory=list)
    operations: int = 0
    listings: int = 0
    gave_up: int = 0
    done: int = 0
    values: Iterator[int] = field(default_factory=lambda: count(100))
    created: set[Key] = field(default_factory=set)


def kinds_of(choose: Callable[[Sequence[Any]], Any], *, race: bool, calm: bool = False, strays: bool = False) -> Kinds:
    """The kinds of operations of a schedule: those of writers, and those of readers; often the same."""
    if calm:
        return (
            ("create", "put", "put", "update", "update", "delete"),
            ("get", "get", "page", "put", "update", "delete"),
        )
    if strays:
        readers = ("get", "get", "batch_get", "page", "scan")
        return choose(((*readers, "create", "put", "update", "delete"), (*readers, "get", "create"))), readers
    if race:
        return (
            ("create", "create", "create", "put", "delete", "batch_write"),
            ("batch_get", "scan", "page", "count", "get", "batch_write", "update"),
        )
    mixed = (*_WRITES, *_READS, *_LISTS)
    chosen: Kinds = choose(
        (
            (mixed, mixed),
            (_WRITES, mixed),
            (_WRITES, _READS),
            (_WRITES, _LISTS),
            (("create", "put", "delete"), ("page", "page", "scan", "batch_get")),
        )
    )
    return chosen
