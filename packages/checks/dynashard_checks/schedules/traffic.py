"""What the clients of a schedule share: their keys, kinds of operations, pace, and times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Protocol

from dynashard import EntityDefinition
from dynashard.entity import IndexDefinition
from dynashard.topology import Topology, View
from dynashard_checks.schedules.database import Database
from dynashard_checks.schedules.history import Key
from dynashard_checks.schedules.scheduler import Actor, Scheduler
from dynashard_checks.schedules.sessions import Session

LEASE: Final = 30.0
OPERATION: Final = 30.0
SKEW: Final = 1.0
_WRITES: Final = ("create", "put", "update", "delete", "batch_write")
_READS: Final = ("get", "exists", "batch_get")
_LISTS: Final = ("page", "page", "page", "scan", "count")


class TimedTopology:
    """A topology that notes when its actor reads it, because later requests rely on that view."""

    def __init__(self, inner: Topology, actor: Actor, scheduler: Scheduler) -> None:
        self._inner = inner
        self._actor = actor
        self._scheduler = scheduler

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """See `Topology.view`."""
        self._actor.topology_read_at = self._scheduler.now
        return self._inner.view(entity, partition)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """See `Topology.index_view`."""
        self._actor.topology_read_at = self._scheduler.now
        return self._inner.index_view(entity, index)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """See `Topology.refresh`."""
        self._inner.refresh(entity, partition)


Kinds = tuple[Sequence[str], Sequence[str]]
"""The operations of writers, and those of readers."""


class Pace(Protocol):
    """Decides when clients act."""

    def turns(self, actor: Actor, operations: int) -> Iterator[bool]:
        """Yield before each of a few operations: whether their client reads the topology early."""
        ...

    def rest(self, actor: Actor) -> bool:
        """Rest for a while, and return whether to continue."""
        ...


@dataclass
class Traffic:
    """The state that the clients of a schedule share.

    Attributes:
        database: the simulated database.
        model: the entity.
        keys: the keys that clients use.
        kinds: the operations of writers and readers.
        indexes: the indexes that are listed; None for the table.
        random_placement: whether placement is random, so that each key may be created only once.
        all_expire: whether all items expire, because a random shard is only removed when it is empty.
        some_expire: whether some items expire.
        sessions: listings that have not ended.
        operations: how many operations were started.
        listings: how many listings have ended.
        gave_up: how many operations ended in a retryable error.
        done: how many operations were answered.
        values: gives each write a number of its own.
        created: keys that were created.
    """

    database: Database
    model: type[Any]
    keys: tuple[Key, ...]
    kinds: Kinds
    indexes: Sequence[str | None]
    random_placement: bool = False
    all_expire: bool = False
    some_expire: bool = True
    sessions: list[Session] = field(default_factory=list)
    operations: int = 0
    listings: int = 0
    gave_up: int = 0
    done: int = 0
    values: Iterator[int] = field(default_factory=lambda: count(100))
    created: set[Key] = field(default_factory=set)


def kinds_of(choose: Callable[[Sequence[Any]], Any], *, race: bool, calm: bool = False, strays: bool = False) -> Kinds:
    """Draw the operations of writers and those of readers, which are often the same."""
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
