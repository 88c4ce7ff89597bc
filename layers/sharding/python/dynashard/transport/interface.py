"""The interface to DynamoDB that the rest of the layer uses, and meters of the capacity that answers report.

Requests and answers are DynamoDB JSON as it goes over HTTP: `{"PK": {"S": "a"}}`, binary values as base64 text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum, auto
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from dynashard.errors import ConfigurationError, DynashardError
from dynashard.transport.deadline import LONGEST_OPERATION, require_time

Wire = dict[str, Any]
"""A request or an answer in DynamoDB JSON."""

READING: Final = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
WRITING: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
METERED: Final = READING | WRITING
"""Operations that take `ReturnConsumedCapacity`."""


class Resend(Enum):
    """When a request may be sent again."""

    IF_NOT_EXECUTED = auto()
    """After attempts that were certainly not executed. The default for writes."""
    ALWAYS = auto()
    """Also after an attempt that was written and never answered. Safe for reads, for a write on condition of the exact
    revision that it replaces or deletes, for a transaction with a client request token, and for a write with the same
    effect however often and however late it runs; the caller says in a comment which of these it is."""


Reader = Callable[[bytes | bytearray], Wire | None]
"""Makes an answer of its body, or returns None so that the body is parsed. A transport may use it for a body that is
what DynamoDB sent, in any thread and as soon as it has arrived: while others travel, and without the JSON of all."""


class Call(NamedTuple):
    """One request: an operation such as `GetItem`, its parameters, and when it may be sent again.

    With `resend` None: always for reads and for transactions with a token, otherwise only if it was not executed.
    """

    operation: str
    request: Mapping[str, Any]
    resend: Resend | None = None
    reader: Reader | None = None


class AwsSession(Protocol):
    """A session of the AWS SDK, such as `boto3.Session`: where its user, region and profile come from."""

    @property
    def region_name(self) -> str | None:
        """The region, if one is set."""
        ...

    @property
    def profile_name(self) -> str:
        """The profile, `default` if none is set."""
        ...

    def get_credentials(self) -> Any:
        """Return botocore's credentials, which refresh themselves; None if there are none."""
        ...


class Settings(msgspec.Struct, frozen=True):
    """How a transport reaches DynamoDB; `connect` describes each setting and what is refused."""

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    token: str | None = None
    attempts: int = 4
    connect_timeout: float = 2.0
    read_timeout: float = 10.0
    max_connections: int = 50
    operation_seconds: float = LONGEST_OPERATION
    profile: str | None = None
    session: AwsSession | None = None

    # They hold secrets.
    __repr__ = object.__repr__

    def __post_init__(self) -> None:
        require_time(self.operation_seconds)
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigurationError("Give both access_key and secret_key, or neither.")
        if self.session is not None and (self.access_key is not None or self.profile is not None):
            raise ConfigurationError("A session has its own credentials and profile: leave out access_key and profile.")


class Transport(Protocol):
    """Signs and sends requests, retries them, classifies errors and meters capacity. Safe to share between threads."""

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send the request of a `Call` and return DynamoDB's answer, `ConsumedCapacity` included.

        `ReturnConsumedCapacity` is added in a copy. Failures are retried as `resend` allows, until the last attempt or
        the deadline in force; see `deadline`.

        Raises:
            OutcomeUnknownError: a write may have been executed, or may still be: no usable answer came.
            ConditionFailedError, TransactionCanceledError: with `ambiguous` set if an earlier attempt of this call may
                have been executed, or may still be.
            EngineError: or the subclass that says why. The request was certainly not executed, if it is a write.

        Cost: 1 round trip, and 1 for each retry.
        """
        ...

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send requests, at most `concurrency` at a time, and return their answers in the same order.

        The first error in that order is raised after all have ended. Cost: 1 round trip for each `concurrency` calls.
        """
        ...

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """As `call_all`, with the error of each failed call in place of its answer."""
        ...

    def close(self) -> None:
        """Close sockets and threads. Later calls are refused."""
        ...


def answers_of(outcomes: Iterable[Wire | DynashardError]) -> list[Wire]:
    """Return the answers of `Transport.try_all`; raises the first error among them."""
    answers: list[Wire] = []
    for outcome in outcomes:
        if isinstance(outcome, DynashardError):
            raise outcome
        answers.append(outcome)
    return answers


class Consumed(msgspec.Struct):
    """Capacity units that requests consumed, and the number of requests."""

    read_units: float = 0.0
    write_units: float = 0.0
    requests: int = 0

    def add(self, other: "Consumed") -> None:
        """Add another sum to this one."""
        self.read_units += other.read_units
        self.write_units += other.write_units
        self.requests += other.requests


def consumed_of(operation: str, answer: Mapping[str, Any]) -> Consumed:
    """Return what an answered request consumed over all tables and indexes: 0 units if `ConsumedCapacity` is absent."""
    capacity = answer.get("ConsumedCapacity") or []
    consumed = Consumed(requests=1)
    for entry in capacity if isinstance(capacity, list) else (capacity,):
        units = entry.get("CapacityUnits", 0.0)
        if operation in READING:
            consumed.read_units += units
        else:
            # A transaction may list its condition checks as read units.
            consumed.read_units += entry.get("ReadCapacityUnits", 0.0)
            consumed.write_units += entry.get("WriteCapacityUnits", units)
    return consumed


_NAMED: Final = 100


class Meter(msgspec.Struct):
    """What was consumed while it was in force, and how often each throttle reason was met, retries included.

    `undecodable` is the number of stored items that were left out because they do not fit their entity, and
    `undecodable_items` are the partition key, the sort key and the problem of the first of them.
    """

    consumed: Consumed = msgspec.field(default_factory=Consumed)
    throttles: dict[str, int] = {}
    queries: int = 0
    undecodable: int = 0
    undecodable_items: list[tuple[str, str, str]] = []
    _lock: Lock = msgspec.field(default_factory=Lock)

    def record(self, operation: str, consumed: Consumed) -> None:
        """Count one answered request."""
        with self._lock:
            self.consumed.add(consumed)
            self.queries += operation == "Query"

    def throttled(self, reason: str) -> None:
        """Count one throttled attempt."""
        with self._lock:
            self.throttles[reason] = self.throttles.get(reason, 0) + 1

    def left_out(self, items: Sequence[tuple[str, str, str]]) -> None:
        """Count stored items that do not fit their entity."""
        with self._lock:
            self.undecodable += len(items)
            self.undecodable_items += items[: _NAMED - len(self.undecodable_items)]

    def take_back(self, items: Sequence[tuple[str, str, str]]) -> None:
        """Stop counting items that a page has left out which is read again."""
        with self._lock:
            self.undecodable -= len(items)
            self.undecodable_items = [each for each in self.undecodable_items if each not in items]


_METERS: ContextVar[tuple[Meter, ...]] = ContextVar("dynashard_meters", default=())


class metered:  # noqa: N801 - called like a function, as the contexts of `contextlib`
    """Meter everything that is sent inside this context, also by the transport's threads. Meters nest."""

    def __enter__(self) -> Meter:
        self._token = _METERS.set((*_METERS.get(), meter := Meter()))
        return meter

    def __exit__(self, *_: object) -> None:
        _METERS.reset(self._token)


def meters() -> tuple[Meter, ...]:
    """Return the meters in force; transports record into each."""
    return _METERS.get()


def with_capacity(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request with `ReturnConsumedCapacity`, which it may have already or not take."""
    if operation in METERED and "ReturnConsumedCapacity" not in request:
        return {**request, "ReturnConsumedCapacity": "TOTAL"}
    return request


def record(operation: str, answer: Mapping[str, Any]) -> None:
    """Record what an answered request consumed in the meters in force."""
    if operation in METERED:
        for meter in meters():
            meter.record(operation, consumed_of(operation, answer))


_THROTTLED: ContextVar[frozenset[str]] = ContextVar("dynashard_throttled", default=frozenset())


def record_throttle(reason: str) -> None:
    """Record a throttled attempt in the meters in force, and for `throttle_reasons`."""
    _THROTTLED.set(_THROTTLED.get() | {reason})
    for meter in meters():
        meter.throttled(reason)


def remember_throttles(reasons: frozenset[str]) -> None:
    """Add the reasons of throttles that another thread has met, and has recorded, for this one."""
    if reasons:
        _THROTTLED.set(_THROTTLED.get() | reasons)


def forget_throttles() -> None:
    """Begin anew with `throttle_reasons`."""
    if _THROTTLED.get():
        _THROTTLED.set(frozenset())


def throttle_reasons() -> frozenset[str]:
    """Return the reasons of the throttles that this thread has met since it has forgotten them.

    That costs a request less than a meter. Requests that are sent together are not included: the threads of a
    transport meet their throttles.
    """
    return _THROTTLED.get()
