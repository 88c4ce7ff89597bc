"""What every operation on stored items needs, in one frozen object."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dynashard.repository.batch import Patience
from dynashard.routing import Router
from dynashard.transport.interface import Transport


def _new_revision() -> str:
    return secrets.token_urlsafe(12)


@dataclass(frozen=True, slots=True)
class Store:
    """A table, the way to it, and the sources of time and randomness.

    Attributes:
        transport: the wire.
        table: the table's name.
        router: where items live.
        clock: wall clock, in epoch seconds.
        new_revision: makes write ids; they must differ between writes.
        patience: how long batches go on with what DynamoDB leaves unprocessed.
    """

    transport: Transport
    table: str
    router: Router
    clock: Callable[[], float] = time.time
    new_revision: Callable[[], str] = _new_revision
    patience: Patience = field(default_factory=Patience)

    def now(self) -> int:
        """The time by which items expire, in epoch seconds."""
        return int(self.clock())
