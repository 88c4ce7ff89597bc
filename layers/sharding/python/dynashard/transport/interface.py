"""The wire, as the rest of the layer sees it.

A request and an answer are DynamoDB's own JSON, exactly as it goes over HTTP: `{"PK": {"S": "a"}}`, binary
values as base64 text. Whoever implements `Transport` signs, sends, retries, classifies errors and meters
capacity.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Lock
from typing import Any, Protocol

from dynashard.errors import DynashardError

Wire = dict[str, Any]
"""A request or an answer in DynamoDB JSON."""


class Resend(Enum):
    """When a request may be sent again."""

    IF_NOT_EXECUTED = auto()
    """After attempts that were certainly not executed. The default for writes."""
    ALWAYS = auto()
    """Also after an attempt that was written and never answered. Safe for reads, for a write on condition of the exact
    revision that it replaces or deletes, for a transaction with a client request token, and for what has the same
    effect however often and however late it runs; the caller says in a comment why it is one of these."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: an operation such as `GetItem`, its parameters, and when it may be sent again.

    With `resend` None: always for reads and for transactions with a token, otherwise only if it was not executed.
    """

    operation: str
    request: Mapping[str, Any]
    resend: Resend | None = None


class Transport(Protocol):
    """Sends requests to DynamoDB. Implementations are safe to share between threads."""

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request and return DynamoDB's answer.

        It is sent again after failures as `resend` allows, until the deadline in force (see `deadline`) or the last
        attempt.

        Args:
            operation: DynamoDB's name of the operation, such as `GetItem`.
            request: its parameters in DynamoDB JSON. The transport adds `ReturnConsumedCapacity` and does not
                change the mapping.
            resend: when it may be sent again; see `Call`.

        Returns:
            The answer in DynamoDB JSON, `ConsumedCapacity` included.

        Raises:
            OutcomeUnknownError: a write may have been executed, or may still be: no usable answer came.
            ConditionFailedError, TransactionCanceledError: with `ambiguous` set if an earlier attempt of this call may
                have been executed, or may still be.
            EngineError: or the subclass that says why. The request was certainly not executed, if it is a write.

        Cost: one round trip, plus one for each retry.
        """
        ...

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once and return their answers in the same order.

        All requests are waited for, then the first error in order is raised, if any.

        Args:
            calls: the requests.
            concurrency: how many may be under way at a time.

        Cost: one round trip for each `concurrency` calls.
        """
        ...

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """As `call_all`, with the error of each call that failed in the place of its answer."""
        ...

    def close(self) -> None:
        """Give back sockets and threads. Later calls are refused."""
        ...


@dataclass(slots=True)
class Consumed:
    """Capacity used, in DynamoDB's units, with how many requests took it."""

    read_units: float = 0.0
    write_units: float = 0.0
    requests: int = 0

    def add(self, other: "Consumed") -> None:
        """Add another sum to this one."""
        self.read_units += other.read_units
        self.write_units += other.write_units
        self.requests += other.requests


@dataclass(slots=True)
class Meter:
    """What was consumed while it was in force, and how often each throttle reason was met.

    Throttled attempts that were retried count too.
    """

    consumed: Consumed = field(default_factory=Consumed)
    throttles: dict[str, int] = field(default_factory=dict)
    queries: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def record(self, operation: str, consumed: Consumed) -> None:
        """Count one answered request."""
        with self._lock:
            self.consumed.add(consumed)
            self.queries += operation == "Query"

    def throttled(self, reason: str) -> None:
        """Count one throttled attempt."""
        with self._lock:
            self.throttles[reason] = self.throttles.get(reason, 0) + 1


_METERS: ContextVar[tuple[Meter, ...]] = ContextVar("dynashard_meters", default=())


@contextmanager
def metered() -> Iterator[Meter]:
    """Meter everything that is sent inside this context. Meters nest.

    A transport that uses threads of its own carries the context to them.
    """
    meter = Meter()
    token = _METERS.set((*_METERS.get(), meter))
    try:
        yield meter
    finally:
        _METERS.reset(token)


def meters() -> tuple[Meter, ...]:
    """The meters in force here; transports record into each."""
    return _METERS.get()
