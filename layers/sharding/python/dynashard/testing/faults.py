"""A transport that fails on a script, around a real one.

    faulty = FaultyTransport(connect(engine_url, ...), [lost_answer("PutItem"), throttled("Query", nth=2)])
    ...
    assert not faulty.waiting   # every fault was injected

Faults are those of DynamoDB and networks: an applied write whose answer is lost, a retry that meets its own write, a
throttle, a conflict, another writer in between, a batch that is done in part. Errors are made by the transport's own
classification, so they are the same as real ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from dynashard.errors import EngineError, EngineUnavailableError
from dynashard.runtime import Runtime
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.attempts import Attempts, resend_of
from dynashard.transport.classification import Refusal, classify, throttle_names, unanswered
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Call, Resend, Transport, Wire, record_throttle

Send = Callable[[Mapping[str, Any]], Wire]
"""Sends a request of the operation to the real transport. `FaultyTransport` passes a `Sending`."""


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends requests of an operation to the real transport."""

    inner: Transport
    operation: str
    resend: Resend

    def __call__(self, request: Mapping[str, Any]) -> Wire:
        """Send a request."""
        return self.inner.call(self.operation, request, resend=self.resend)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in place of a request: `strike(send, request)` returns the answer or raises.

    `nth` counts the requests of this operation from 1. None injects the fault into each of them. Requests without
    `text` are spared.
    """

    operation: str
    strike: Callable[[Send, Mapping[str, Any]], Wire]
    nth: int | None = 1
    text: str = ""


class FaultyTransport(OneByOne):
    """Implements `Transport`. `call_all` sends one call after the other, so a script always has the same effect."""

    def __init__(self, inner: Transport, plan: Sequence[Fault] = ()) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self._plan = list(plan)
        self._seen: Counter[str] = Counter()
        self._struck: set[int] = set()
        self._lock = own_lock(self)

    def inject(self, *faults: Fault) -> None:
        """Add faults; requests are counted from here on."""
        with self._lock:
            self._plan = [*self.waiting, *faults]
            self._seen.clear()
            self._struck.clear()

    @property
    def waiting(self) -> list[Fault]:
        """The faults that were not injected yet."""
        return [fault for at, fault in enumerate(self._plan) if at not in self._struck]

    def sent(self, operation: str) -> int:
        """Return how many requests of this operation were made."""
        return self._seen[operation]

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request, or inject its fault; see `Transport.call`."""
        fault = self._next(operation, request)
        if fault is None:
            return self.inner.call(operation, request, resend=resend)
        return fault.strike(Sending(self.inner, operation, resend or resend_of(operation, request)), request)

    def close(self) -> None:
        """Close the real transport."""
        self.inner.close()

    def _next(self, operation: str, request: Mapping[str, Any]) -> Fault | None:
        with self._lock:
            self.calls.append(Call(operation, request))
            self._seen[operation] += 1
            for at, fault in enumerate(self._plan):
                due = fault.operation == operation and fault.nth in (None, self._seen[operation])
                if due and (not fault.text or fault.text in json.dumps(request)):
                    self._struck.add(at)
                    return fault
            return None


def lost_request(operation: str, *, nth: int | None = 1) -> Fault:
    """The request is sent and never arrives, and all retries fail."""

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise unanswered(operation, "ReadTimeoutError", "The request was lost")

    return Fault(operation, strike, nth)


def lost_answer(operation: str, *, nth: int | None = 1) -> Fault:
    """The request is applied, but its answer never arrives."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        send(request)
        raise unanswered(operation, "ReadTimeoutError", "The answer was lost")

    return Fault(operation, strike, nth)


def lost_after(operation: str, action: Callable[[], object], *, nth: int | None = 1) -> Fault:
    """`action` writes first. Then the request is executed or refused, and its answer is lost."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        action()
        with suppress(EngineError):
            send(request)
        raise unanswered(operation, "ReadTimeoutError", "The answer was lost")

    return Fault(operation, strike, nth)


class Late:
    """A request that is lost on its way and arrives later, when the test says so: `arrive`.

    late = Late("PutItem")
    sandbox.inject(late.fault)
    ...
    late.arrive()
    """

    def __init__(self, operation: str, *, nth: int | None = 1) -> None:
        self._operation = operation
        self._held: list[tuple[Send, Mapping[str, Any]]] = []
        self.fault = Fault(operation, self._hold, nth)

    def arrive(self) -> list[Wire | EngineError]:
        """Let the requests that are under way be executed, and return their answers, which nobody waits for."""
        held, self._held = self._held, []
        return [_outcome(send, request) for send, request in held]

    def _hold(self, send: Send, request: Mapping[str, Any]) -> Wire:
        self._held.append((send, request))
        raise unanswered(self._operation, "ReadTimeoutError", "The request is late")


def _outcome(send: Send, request: Mapping[str, Any]) -> Wire | EngineError:
    try:
        return send(request)
    except EngineError as error:
        return error


def unreachable(operation: str, *, nth: int | None = 1) -> Fault:
    """No connection is made, so the request is certainly not executed, and all retries fail."""

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise EngineUnavailableError("No connection.", operation=operation, aws_code="EndpointConnectionError")

    return Fault(operation, strike, nth)


def repeated(operation: str, *, nth: int | None = 1) -> Fault:
    """The request is applied, its answer is lost, and the transport sends it again if that is allowed."""
    return meanwhile_repeated(operation, lambda: None, nth=nth)


def meanwhile_repeated(operation: str, action: Callable[[], object], *, nth: int | None = 1) -> Fault:
    """As `repeated`, and `action` writes between the two attempts."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        resend = send.resend if isinstance(send, Sending) else Resend.IF_NOT_EXECUTED

        def attempt(number: int) -> Wire:
            answer = send(request)
            if number > 1:
                return answer
            action()
            raise unanswered(operation, "ReadTimeoutError", "The answer was lost")

        return Attempts(runtime=Runtime(sleep=lambda _: None)).run(attempt, operation, resend)

    return Fault(operation, strike, nth)


def meanwhile(operation: str, action: Callable[[], object], *, nth: int | None = 1) -> Fault:
    """`action` writes just before the request arrives."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        action()
        return send(request)

    return Fault(operation, strike, nth)


def afterwards(operation: str, action: Callable[[], object], *, nth: int | None = 1) -> Fault:
    """`action` runs after the request was applied and before its answer arrives."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        answer = send(request)
        action()
        return answer

    return Fault(operation, strike, nth)


def throttled(
    operation: str,
    *,
    reason: str = "TableWriteKeyRangeThroughputExceeded",
    resource: str = "arn:aws:dynamodb:eu-west-1:123456789012:table/dynashard",
    nth: int | None = 1,
) -> Fault:
    """DynamoDB throttles the request and all retries. With an empty `reason` the answer has none."""
    reasons = [{"reason": reason, "resource": resource}] if reason else []
    return _refused(operation, "ThrottlingException", {"throttlingReasons": reasons}, nth)


def conflict(operation: str, *, nth: int | None = 1) -> Fault:
    """Another transaction holds the item."""
    return _refused(operation, "TransactionConflictException", {}, nth)


def unprocessed(operation: str, *, keep: int, nth: int | None = 1) -> Fault:
    """A batch of one table is done except for its last `keep` requests or keys, which are returned as unprocessed."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        [(table, asked)] = request["RequestItems"].items()
        if operation == "BatchWriteItem":
            done, left = asked[:-keep], asked[-keep:]
            answer = send({**request, "RequestItems": {table: done}}) if done else {}
            return {**answer, "UnprocessedItems": {table: left}}
        done, left = asked["Keys"][:-keep], asked["Keys"][-keep:]
        answer = send({**request, "RequestItems": {table: {**asked, "Keys": done}}}) if done else {"Responses": {}}
        return {**answer, "UnprocessedKeys": {table: {**asked, "Keys": left}}}

    return Fault(operation, strike, nth)


def about(text: str, fault: Fault) -> Fault:
    """Inject a fault into each request that contains this text, and into no other."""
    return replace(fault, nth=None, text=text)


def too_large(operation: str, *, nth: int | None = 1) -> Fault:
    """DynamoDB refuses the request because of the size of an item."""
    return _refused(operation, "ValidationException", {}, nth, "Item size has exceeded the maximum allowed size")


class AttemptsOn(FaultyTransport):
    """Injects faults below the retries: each fails one attempt, and the layer's rules decide about the next one.

    Attributes:
        attempts: how many attempts were made of operations with a fault.
    """

    def __init__(self, inner: Transport, *plan: Fault) -> None:
        super().__init__(inner, plan)
        self.attempts = 0
        self._concerned = {fault.operation for fault in plan}

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request with retries, or inject faults into its attempts."""
        resend = resend or resend_of(operation, request)

        def once(_number: int) -> Wire:
            self.attempts += operation in self._concerned
            return FaultyTransport.call(self, operation, request, resend=Resend.IF_NOT_EXECUTED)

        return Attempts(runtime=Runtime(sleep=lambda _: None)).run(once, operation, resend)


def _refused(operation: str, code: str, body: Mapping[str, Any], nth: int | None, message: str = "") -> Fault:
    refusal = Refusal(operation=operation, status=400, code=code, message=message, body=body, attempts=4)

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        for name in throttle_names(refusal):
            record_throttle(name)
        raise classify(refusal)

    return Fault(operation, strike, nth)
