"""The layer's transport in virtual time: the model decides about each request, and the engine executes what it admits.

Retries, deadlines, the classification of errors and the meters are the layer's own.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import chain
from math import inf
from random import Random
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.runtime import Runtime
from dynashard.transport.attempts import Attempts, resend_of
from dynashard.transport.classification import Refusal, classify, throttle_names
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.deadline import LONGEST_OPERATION, within
from dynashard.transport.interface import METERED, Call, Resend, Wire, consumed_of, meters, record_throttle
from dynashard_lab.plan.limits import TRANSACTION_FACTOR
from dynashard_lab.simulate.actors import Actors
from dynashard_lab.simulate.engine.engine import Engine
from dynashard_lab.simulate.engine.plans import Plan
from dynashard_lab.simulate.engine.refusal import RefusedError
from dynashard_lab.simulate.model import TableModel
from dynashard_lab.simulate.throttle import Throttle, cancelled

_BAD_REQUEST: Final = 400
_CONDITION: Final = "ConditionalCheckFailedException"


@dataclass(slots=True)
class Traffic:
    """What was sent: requests, those among them that were throttled, and how often each reason was named."""

    requests: int = 0
    throttled: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class World:
    """The engine and the models of its tables, in virtual time.

    Args:
        engine: executes requests.
        models: decide about requests, by table. A table without a model never throttles, and answers at once, because
            the layer holds locks while it reads the topology.
        seed: of all random numbers of the layer.
        begin: the models' time at the start, in seconds.
    """

    def __init__(self, engine: Engine, models: Mapping[str, TableModel], *, seed: int = 1, begin: float = 0.0) -> None:
        self.actors = Actors()
        self._begin = begin
        random = Random(seed)
        with within(inf, self.actors.clock):
            # Deadlines inside take their clock from this one.
            self.actors.keep_context()
        self.random = random
        self.runtime = self.runtime_ahead(0.0)
        self.traffic = Traffic()
        self._engine = engine
        self._models = models
        self._timed = frozenset(models)
        self._answers: dict[tuple[str, Throttle], _ThrottledAnswer] = {}
        self._special: dict[str, Callable[[Mapping[str, Any]], Wire]] = {
            "BatchWriteItem": self._batch_write,
            "BatchGetItem": self._batch_get,
            "TransactWriteItems": self._transact_write,
            "TransactGetItems": self._transact_get,
        }

    def runtime_ahead(self, seconds: float) -> Runtime:
        """Return the time and randomness of a process whose wall clock is ahead; below 0 it is behind."""
        now, monotonic = self.actors, self.actors.clock
        wall = (lambda: now.now + seconds) if seconds else monotonic
        return Runtime(clock=wall, monotonic=monotonic, sleep=self.actors.sleep, random=self.random.random)

    def send(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """Decide about a request and execute it.

        Raises:
            DynashardError: as the layer's own classification of DynamoDB's answer.
        """
        self.traffic.requests += 1
        try:
            special = self._special.get(operation)
            if special is not None:
                return special(request)
            plan = self._engine.single(operation, request)
        except RefusedError as refused:
            raise self._classified(operation, refused) from None
        throttle = self._throttle(plan)
        if throttle is not None:
            raise self._throttled(operation, throttle)
        if plan.refused is not None:
            raise self._classified(operation, plan.refused)
        plan.commit()
        return {**plan.answer, "ConsumedCapacity": _capacity(plan.table.name, plan.units)}

    def takes_time(self, request: Mapping[str, Any]) -> bool:
        """Whether a request is a transaction, or one to a table with a model."""
        if "TransactItems" in request:
            return True
        tables = request.get("RequestItems") or (request.get("TableName"),)
        return not self._timed.isdisjoint(tables)

    def _classified(self, operation: str, refused: RefusedError) -> DynashardError:
        refusal = Refusal(operation, _BAD_REQUEST, refused.code, refused.message, refused.body)
        names = throttle_names(refusal)
        if names:
            self.traffic.throttled += 1
            self.traffic.reasons.update(names)
            _meter_throttle(names)
        return classify(refusal)

    def _throttled(self, operation: str, throttle: Throttle) -> DynashardError:
        """Return the error of a throttled attempt, and count it."""
        answer = self._answers.get((operation, throttle))
        if answer is None:
            answer = self._answers[operation, throttle] = _throttled_answer(operation, throttle)
        traffic = self.traffic
        traffic.throttled += 1
        for reason in throttle.reasons:
            traffic.reasons[reason.reason] += 1
        _meter_throttle(answer.names)
        return classify(answer.refusal)

    def _throttle(self, plan: Plan) -> Throttle | None:
        """Return the throttle of a plan; if there is none, its units are consumed."""
        model = self._models.get(plan.table.name)
        if model is None:
            return None
        return model.admit_many(self._begin + self.actors.seconds, 1, plan.accesses)[1]

    def _some(
        self, operation: str, planned: list[tuple[Wire, Plan]]
    ) -> tuple[list[tuple[Wire, Plan]], list[tuple[Wire, Plan]]]:
        """Return the parts of a batch that are admitted, and the others; refuses a batch of which none is admitted."""
        done: list[tuple[Wire, Plan]] = []
        left: list[tuple[Wire, Plan]] = []
        throttles: list[Throttle] = []
        for part, plan in planned:
            throttle = self._throttle(plan)
            if throttle is None:
                done.append((part, plan))
            else:
                left.append((part, plan))
                throttles.append(throttle)
        if throttles and not done:
            reasons = dict.fromkeys(chain.from_iterable(each.reasons for each in throttles))
            raise self._throttled(operation, Throttle(tuple(reasons), throttles[0].provisioned))
        for throttle in throttles:
            self.traffic.reasons.update(each.reason for each in throttle.reasons)
        self.traffic.throttled += len(throttles)
        return done, left

    def _batch_write(self, request: Mapping[str, Any]) -> Wire:
        done, left = self._some("BatchWriteItem", self._engine.batch_write(request))
        unprocessed: Wire = {}
        for action, plan in left:
            unprocessed.setdefault(plan.table.name, []).append(action)
        for _, plan in done:
            plan.commit()
        return {"UnprocessedItems": unprocessed, "ConsumedCapacity": _capacities([plan for _, plan in done])}

    def _batch_get(self, request: Mapping[str, Any]) -> Wire:
        done, left = self._some("BatchGetItem", self._engine.batch_get(request))
        responses: Wire = {table: [] for table in request["RequestItems"]}
        unprocessed: Wire = {}
        for _, plan in done:
            if "Item" in plan.answer:
                responses[plan.table.name].append(plan.answer["Item"])
        for key, plan in left:
            table = plan.table.name
            reading = unprocessed.setdefault(table, {**request["RequestItems"][table], "Keys": []})
            reading["Keys"].append(key)
        capacity = _capacities([plan for _, plan in done])
        return {"Responses": responses, "UnprocessedKeys": unprocessed, "ConsumedCapacity": capacity}

    def _transact_write(self, request: Mapping[str, Any]) -> Wire:
        plans = self._engine.transact_write(request)
        self._transact(plans)
        if any(plan.refused is not None for plan in plans):
            raise _cancelled(plans)
        for plan in plans:
            plan.commit()
        self._engine.executed(request)
        return {"ConsumedCapacity": _capacities(plans, transactional=True)}

    def _transact_get(self, request: Mapping[str, Any]) -> Wire:
        plans = self._engine.transact_get(request)
        self._transact(plans)
        return {
            "Responses": [plan.answer for plan in plans],
            "ConsumedCapacity": _capacities(plans, transactional=True),
        }

    def _transact(self, plans: Sequence[Plan]) -> None:
        """Consume the units of a transaction, or refuse it as a whole: the first table that lacks units decides."""
        for name in {plan.table.name for plan in plans} & self._models.keys():
            accesses = [plan.accesses if plan.table.name == name else () for plan in plans]
            throttles = self._models[name].transact(self._begin + self.actors.seconds, accesses)
            if any(throttles):
                body = cancelled(throttles)
                raise RefusedError("TransactionCanceledException", body["Message"], **body)


@dataclass(frozen=True, slots=True)
class _ThrottledAnswer:
    """DynamoDB's answer to a throttled attempt, and the names under which meters count it.

    Made once for each operation and throttle: equal attempts get equal answers, and most attempts of a hot key are.
    """

    refusal: Refusal
    names: tuple[str, ...]


def _throttled_answer(operation: str, throttle: Throttle) -> _ThrottledAnswer:
    refusal = Refusal(operation, _BAD_REQUEST, throttle.code, throttle.message, throttle.body())
    return _ThrottledAnswer(refusal, throttle_names(refusal))


def _meter_throttle(names: tuple[str, ...]) -> None:
    for name in names:
        record_throttle(name)


def _cancelled(plans: Sequence[Plan]) -> RefusedError:
    reasons: list[Wire] = []
    for plan in plans:
        refused = plan.refused
        if refused is None:
            reasons.append({"Code": "None"})
            continue
        code = "ConditionalCheckFailed" if refused.code == _CONDITION else "ValidationError"
        item = {"Item": refused.body["Item"]} if "Item" in refused.body else {}
        reasons.append({"Code": code, "Message": refused.message, **item})
    codes = ", ".join(reason["Code"] for reason in reasons)
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    return RefusedError("TransactionCanceledException", message, CancellationReasons=reasons)


def _capacity(table: str, units: float) -> Wire:
    return {"TableName": table, "CapacityUnits": units}


def _capacities(plans: Sequence[Plan], *, transactional: bool = False) -> list[Wire]:
    units: dict[str, float] = {}
    for plan in plans:
        # The first access is the table's own, which a transaction doubles.
        more = plan.accesses[0].units * (TRANSACTION_FACTOR - 1) if transactional else 0.0
        units[plan.table.name] = units.get(plan.table.name, 0.0) + plan.units + more
    return [_capacity(table, sum_) for table, sum_ in units.items()]


Executed = Callable[[str, Mapping[str, Any], Wire], None]
"""Receives an executed request: its operation, the request and its answer."""


class VirtualTransport:
    """A `Transport` of one process in a world. Each has retries of its own.

    Args:
        world: where requests are sent.
        request_seconds: how long a request takes; those of `call_all` and `try_all` are under way at the same time.
        operation_seconds: as of `dynashard.transport.connect`.
        ahead: by how many seconds the wall clock of the process is ahead; below 0 it is behind.
        executed: receives each request that was executed, with its answer.

    Attributes:
        runtime: time and randomness of the process.
        clock_offset: what it has learned about its wall clock from the dates of answers, each of which has one.
    """

    def __init__(
        self,
        world: World,
        *,
        request_seconds: float = 0.0,
        operation_seconds: float = LONGEST_OPERATION,
        ahead: float = 0.0,
        executed: Executed | None = None,
    ) -> None:
        self._world = world
        self._request_seconds = request_seconds
        self._operation_seconds = operation_seconds
        self._executed = executed
        self.runtime = world.runtime_ahead(ahead)
        self.clock_offset = ClockOffset(self.runtime)
        self._dated = 0
        """The second that the last answer had as its date."""
        self._attempts = Attempts(runtime=self.runtime)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        self._take([request])
        return self._run(operation, request, resend, None)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at the same time; see `Transport.call_all`."""
        answers: list[Wire] = []
        for answer in self.try_all(calls, concurrency=concurrency):
            if isinstance(answer, DynashardError):
                raise answer
            answers.append(answer)
        return answers

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at the same time; see `Transport.try_all`.

        Only those that fail at first get an actor of their own, in which they are sent again.
        """
        self._take([call.request for call in calls], concurrency)
        answers = [self._first(call) for call in calls]
        failed = [at for at, answer in enumerate(answers) if isinstance(answer, DynashardError)]
        if len(failed) == 1:
            self._go_on(calls, answers, failed[0])
        elif failed:
            self._world.actors.gather([lambda at=at: self._go_on(calls, answers, at) for at in failed])  # type: ignore[misc]
        return answers

    def close(self) -> None:
        """Do nothing: there are no sockets."""

    def _take(self, requests: Sequence[Mapping[str, Any]], concurrency: int = 1) -> None:
        """Let the time of some requests pass, of which so many are under way at a time."""
        timed = sum(map(self._world.takes_time, requests)) if self._request_seconds else 0
        if timed:
            self._world.actors.sleep(self._request_seconds * -(-timed // concurrency))

    def _first(self, call: Call) -> Wire | DynashardError:
        try:
            answer = self._answer(call.operation, _asking(call.operation, call.request))
        except DynashardError as error:
            return error
        _meter(call.operation, answer)
        return answer

    def _answer(self, operation: str, asking: Mapping[str, Any]) -> Wire:
        """Send a request once, and learn from the date of its answer, which an error has too."""
        second, now = int(self._world.actors.now), self.runtime.clock()
        if second != self._dated or now >= self.clock_offset.again:
            self._dated = second
            self.clock_offset.observe(formatdate(second, usegmt=True), now, now)
        answer = self._world.send(operation, asking)
        if self._executed is not None:
            self._executed(operation, asking, answer)
        return answer

    def _go_on(self, calls: Sequence[Call], answers: list[Wire | DynashardError], at: int) -> None:
        """Continue with a call whose first attempt has failed."""
        call, first = calls[at], answers[at]
        try:
            answers[at] = self._run(call.operation, call.request, call.resend, first)
        except DynashardError as error:
            answers[at] = error

    def _run(
        self, operation: str, request: Mapping[str, Any], resend: Resend | None, failed: Wire | DynashardError | None
    ) -> Wire:
        """Send a request until it is answered or may not be sent again; `failed` is the error of the first attempt."""
        asking = _asking(operation, request)

        def once(attempt: int) -> Wire:
            if attempt == 1 and isinstance(failed, DynashardError):
                raise failed
            if attempt > 1:
                self._take([asking])
            return self._answer(operation, asking)

        with within(self._operation_seconds):
            answer = self._attempts.run(once, operation, resend or resend_of(operation, request))
        _meter(operation, answer)
        return answer


def _asking(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request with what the layer's transport adds to it."""
    if operation in METERED and "ReturnConsumedCapacity" not in request:
        return {**request, "ReturnConsumedCapacity": "TOTAL"}
    return request


def _meter(operation: str, answer: Wire) -> None:
    if operation in METERED:
        for meter in meters():
            meter.record(operation, consumed_of(operation, answer))
