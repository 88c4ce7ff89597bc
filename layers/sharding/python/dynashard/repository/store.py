"""What every operation on stored items needs, in one frozen object."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.repository.retry_policy import RetryPolicy
from dynashard.routing import Router
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.deadline import LONGEST_OPERATION, require_time
from dynashard.transport.interface import Transport

Throttled = Callable[[EntityDefinition[Any], str | None, ThrottledError], None]
"""Told of a throttle that outlasted retries: the entity, the logical partition where it is known, and the error."""


def _new_revision() -> str:
    return secrets.token_urlsafe(12)


def ignore_throttles(_entity: EntityDefinition[Any], _partition: str | None, _error: ThrottledError) -> None:
    """Nobody wants to know of throttles."""


@dataclass(frozen=True, slots=True)
class Store:
    """A table, the way to it, and the sources of time and randomness.

    Attributes:
        transport: the wire.
        table: the table's name.
        router: where items live.
        runtime: time and randomness, which draws shards for random placement.
        new_revision: makes write ids; they must differ between writes.
        retry_policy: how long to go on with what DynamoDB leaves unprocessed, or what meets a move.
        throttled: told of a throttle before the caller is.
        batch_concurrency: how many single writes of a batch may be under way at a time. With 1 they go one after the
            other in the calling thread.
        operation_seconds: how long one operation may take, with all of its requests and pauses. A change of a shard
            count waits for that long between its phases.

    Raises:
        ConfigurationError: an operation of no length.
    """

    transport: Transport
    table: str
    router: Router
    runtime: Runtime = SYSTEM
    new_revision: Callable[[], str] = _new_revision
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    throttled: Throttled = ignore_throttles
    batch_concurrency: int = 16
    operation_seconds: float = LONGEST_OPERATION

    def __post_init__(self) -> None:
        require_time(self.operation_seconds)

    def now(self) -> int:
        """The time by which items expire, in epoch seconds."""
        return int(self.runtime.clock())
