"""What every operation on stored items needs, in one frozen object, and the deadline of each operation."""

from binascii import b2a_base64
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from os import urandom
from typing import Any, Concatenate, Final, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from msgspec import Struct

from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.repository.retry_policy import RetryPolicy
from dynashard.routing import Places, Router
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.deadline import LONGEST_OPERATION, begin, end, require_time
from dynashard.transport.interface import Transport, Wire

E = TypeVar("E", bound=Entity)

_REVISION: Final = 12
"""Bytes of a revision, which is their Base64 text."""
_REVISION_TEXT: Final = 16
_IN_URLS: Final = bytes.maketrans(b"+/", b"-_")

KeyLike = Mapping[str, Any] | Entity
"""An item, or the fields of its key: `{"tenant_id": "abc", "id": "123"}`."""

Throttled = Callable[[EntityDefinition[Any], str | None, ThrottledError], None]
"""Called for a throttle that outlasted retries: the entity, the logical partition if it is known, and the error."""


def ignore_throttles(_entity: EntityDefinition[Any], _partition: str | None, _error: ThrottledError) -> None:
    """Do nothing."""


Companion = Callable[[Entity, int], Wire]
"""Makes a conditional action on another table that is executed in one transaction with a create.

It is called with the item as it will be stored, and the shard count that decides its place. For the same arguments it
returns the same action. If the condition of the action fails, the transaction ends with `ConditionFailedError`.
"""


class Written(NamedTuple, Generic[E]):
    """A stored item, and whether its key had no live item before."""

    item: E
    created: bool


class ExactlyOnce(Protocol):
    """Writes single items so that a lost answer does not leave their outcome open. Raises as `Repository` does."""

    def create(self, item: E, companion: Companion | None = None) -> E:
        """Store an item under a key that has no live item, with an action on another table if there is one."""
        ...

    def put(self, item: E, *, if_match: str | None, over: Entity | None) -> E:
        """Store an item whether or not its key has one; with `if_match`, only over the one at that revision."""
        ...

    def update(
        self,
        model: type[E],
        key: KeyLike,
        *,
        set: Mapping[str, Any] | None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str],
        add: Mapping[str, Any] | None,
        if_match: str | None,
    ) -> E:
        """Update some fields of a live item, and return it as updated."""
        ...

    def delete(self, model: type[Entity], key: KeyLike, *, if_match: str | None) -> None:
        """Delete a live item."""
        ...


def random_revisions(count: int) -> list[str]:
    """Return so many revisions, of which nobody has any."""
    # One call of the system for all of them takes a fifth of the time.
    text = b2a_base64(urandom(_REVISION * count), newline=False).translate(_IN_URLS).decode()
    return [text[at : at + _REVISION_TEXT] for at in range(0, count * _REVISION_TEXT, _REVISION_TEXT)]


class Store(Struct, frozen=True):
    """A table, and what operations on it need.

    Attributes:
        exactly_once: opens what writes items whose entity, or caller, demands to be written exactly once.
        runtime: time and randomness, which draws shards for random placement.
        new_revisions: makes so many write ids; they must differ between writes.
        throttled: called for a throttle before the caller gets the error.
        batch_concurrency: how many single writes of a batch may be in flight. With 1 they are sent one after the
            other in the calling thread.
        operation_seconds: how long a public method may take, with all of its requests, pauses and reads of evidence. A
            resize waits for that long between its phases. `ConfigurationError` if it is not above 0.
    """

    transport: Transport
    table: str
    router: Router
    exactly_once: Callable[["Store"], ExactlyOnce]
    runtime: Runtime = SYSTEM
    new_revisions: Callable[[int], Sequence[str]] = random_revisions
    retry_policy: RetryPolicy = RetryPolicy()
    throttled: Throttled = ignore_throttles
    batch_concurrency: int = 16
    operation_seconds: float = LONGEST_OPERATION

    def __post_init__(self) -> None:
        require_time(self.operation_seconds)

    def new_revision(self) -> str:
        """Return the id of one write."""
        return self.new_revisions(1)[0]

    def now(self) -> int:
        """Return the time by which items expire, in epoch seconds."""
        return int(self.runtime.clock())

    def stamp(self) -> datetime:
        """Return the time with which items are stamped."""
        return datetime.fromtimestamp(self.runtime.clock(), UTC)


class _OnStore(Protocol):
    _store: Store


S = TypeVar("S", bound=_OnStore)
P = ParamSpec("P")
R = TypeVar("R")


def write_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation, a share of it kept for evidence after a lost answer."""
    return _bounded(method, reserve=True)


def read_operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Bound a method by the store's longest operation."""
    return _bounded(method, reserve=False)


def _bounded(method: Callable[Concatenate[S, P], R], *, reserve: bool) -> Callable[Concatenate[S, P], R]:
    @wraps(method)
    def bounded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        token = begin(self._store.operation_seconds, reserve=reserve)
        try:
            return method(self, *args, **kwargs)
        finally:
            end(token)

    return bounded


def view_ended(store: Store, places: Places) -> bool:
    """Whether the view under which a request was sent has ended, now that it is answered. Costs nothing."""
    return store.runtime.clock() > places.view.expires
