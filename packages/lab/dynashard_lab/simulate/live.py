"""The model of partitions before a real engine: which requests it throttles, with limits that suit one machine.

Only requests to the table of items are limited: those whose keys are `PK` and `SK`. What a request costs is estimated
from the request, and the rest is charged when its answer names the units that it consumed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Any, Final

from dynashard.codec import item_size
from dynashard.schema import PK, SK
from dynashard.transport.interface import READING, Wire, consumed_of
from dynashard_lab.plan.units import Consistency, read_units, write_units
from dynashard_lab.simulate.engine.expressions import names_of, values_of
from dynashard_lab.simulate.engine.parsing import Tree, condition_tree
from dynashard_lab.simulate.engine.refusal import RefusedError
from dynashard_lab.simulate.engine.tables import ITEM_TABLE
from dynashard_lab.simulate.live_throttles import ThrottleLog
from dynashard_lab.simulate.model import TABLE, Access, TableModel
from dynashard_lab.simulate.run import build
from dynashard_lab.simulate.scenario import Scenario, TableSpec
from dynashard_lab.simulate.throttle import Throttle, cancelled

SCALE: Final = 1 / 500
"""The limits of the live mode: a partition writes 2 units and reads 6 a second, so that a slow machine exceeds them."""
_HASTE: Final = 1 / 20
"""The times after which hot partitions are split: 30 s, not 600."""
_LIMITS: Final = (
    "partition_write_units", "partition_read_units", "on_demand_write_units", "on_demand_read_units",
    "table_write_quota", "table_read_quota",
)  # fmt: skip
_HEAT: Final = ("heat_split_seconds", "heat_pause_seconds")
_UNITS: Final = (
    "write_units", "read_units", "warm_write_units", "warm_read_units", "most_write_units", "lowest_write_units",
    "highest_write_units",
)  # fmt: skip
_BURST_SECONDS: Final = 5.0
"""Seconds of a limit that may be used at once. A 500th of a limit is 2 units a second, so that with one second chance
alone would throttle callers who use a third of it."""
_SINGLE: Final = frozenset({"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"})


def scaled(scenario: Scenario, scale: float = SCALE) -> Scenario:
    """Return a scenario whose limits are a part of what they were. Heat splits come sooner; other times stay."""
    changed = {name: getattr(scenario.settings, name) * scale for name in _LIMITS}
    changed |= {name: getattr(scenario.settings, name) * _HASTE for name in _HEAT}
    changed["limit_burst_seconds"] = max(scenario.settings.limit_burst_seconds, _BURST_SECONDS)
    settings = replace(scenario.settings, **changed)
    indexes = {name: _scaled_table(spec, scale) for name, spec in scenario.indexes.items()}
    table = _scaled_table(scenario.table, scale)
    return scenario.model_copy(update={"settings": settings, "table": table, "indexes": indexes})


def _scaled_table(spec: TableSpec, scale: float) -> TableSpec:
    values = {name: getattr(spec, name) for name in _UNITS}
    changed: dict[str, Any] = {name: value * scale for name, value in values.items() if value is not None}
    return spec.model_copy(update={**changed, "schedule": [(at, units * scale) for at, units in spec.schedule]})


@dataclass(slots=True)
class Decision:
    """What becomes of a request.

    Attributes:
        request: what to send to the engine: the request, or the part of a batch that is admitted.
        refused: the body of the answer, whose status is 400, if the request is throttled.
        unprocessed: the parts of a batch that are throttled, as DynamoDB returns them.
        estimated: the units that are consumed already.
        access: where more units are charged.
    """

    request: Mapping[str, Any]
    refused: Wire | None = None
    unprocessed: Wire = field(default_factory=dict)
    estimated: float = 0.0
    access: Access | None = None


class LiveModel:
    """A scenario's table in real time. Safe to share between threads. Indexes that it does not name have no limits.

    Args:
        scenario: has the table, its indexes and the assumptions; see `scaled`.
        clock: seconds that never go back.
    """

    def __init__(self, scenario: Scenario, clock: Callable[[], float]) -> None:
        self._model: TableModel = build(scenario)
        self._throttles = ThrottleLog()
        self._clock = clock
        self._began = clock()
        self._lock = Lock()

    def decide(self, operation: str, request: Mapping[str, Any]) -> Decision:
        """Decide about a request, and consume what it costs as far as that is known."""
        with self._lock:
            if operation in _SINGLE:
                return self._single(operation, request)
            if operation in ("BatchWriteItem", "BatchGetItem"):
                return self._batch(operation, request)
            if operation in ("TransactWriteItems", "TransactGetItems"):
                return self._transaction(request)
        return Decision(request)

    def answered(self, operation: str, decision: Decision, answer: Wire) -> Wire:
        """Charge the units that an answer names beyond the estimate; return it with the unprocessed parts of a batch.

        Answers without `ConsumedCapacity` are not charged.
        """
        consumed = consumed_of(operation, answer)
        more = consumed.read_units + consumed.write_units - decision.estimated
        if more > 0 and decision.access is not None:
            with self._lock:
                self._model.charge(self._now(), decision.access._replace(units=more, size=0.0))
        if not decision.unprocessed:
            return answer
        name = "UnprocessedKeys" if operation in READING else "UnprocessedItems"
        return {**answer, name: {**answer.get(name, {}), **decision.unprocessed}}

    def throttled(self, seconds: float) -> Wire:
        """Return what was throttled in the last seconds; see `ThrottleLog.summary`."""
        with self._lock:
            return self._throttles.summary(self._now(), seconds)

    def _now(self) -> float:
        return self._clock() - self._began

    def _limited(self, accesses: list[Access]) -> list[Access]:
        return [each for each in accesses if each.target in self._model.resources]

    def _admit(self, accesses: list[Access]) -> Throttle | None:
        now, limited = self._now(), self._limited(accesses)
        throttle = self._model.admit(now, *limited) if limited else None
        if throttle is not None:
            self._throttles.add(now, throttle, limited)
        return throttle

    def _single(self, operation: str, request: Mapping[str, Any]) -> Decision:
        accesses = list(_accesses(request, reading=operation in READING))
        throttle = self._admit(accesses)
        if throttle is not None:
            return Decision(request, refused=throttle.body())
        return Decision(request, estimated=_sum(accesses), access=next(iter(self._limited(accesses)), None))

    def _batch(self, operation: str, request: Mapping[str, Any]) -> Decision:
        kept: dict[str, list[Wire]] = {}
        left: dict[str, list[Wire]] = {}
        throttles: list[Throttle] = []
        decision = Decision(request)
        for table, part, asked in _parts(operation, request):
            accesses = list(_accesses(asked, reading=operation in READING))
            throttle = self._admit(accesses)
            (kept if throttle is None else left).setdefault(table, []).append(part)
            if throttle is not None:
                throttles.append(throttle)
            elif accesses:
                decision.estimated += _sum(accesses)
                decision.access = accesses[0]
        if throttles and not kept:
            reasons = tuple(dict.fromkeys(chain.from_iterable(each.reasons for each in throttles)))
            decision.refused = Throttle(reasons, throttles[0].provisioned).body()
        elif throttles:
            decision.request = {**request, "RequestItems": _with_parts(operation, request, kept)}
            decision.unprocessed = _with_parts(operation, request, left)
        return decision

    def _transaction(self, request: Mapping[str, Any]) -> Decision:
        named = [next(iter(action.items())) for action in request["TransactItems"]]
        actions = [list(_accesses(asked, reading=kind == "Get")) for kind, asked in named]
        now, limited = self._now(), [self._limited(each) for each in actions]
        throttles = self._model.transact(now, limited)
        for throttle, accesses in zip(throttles, limited, strict=True):
            if throttle is not None:
                self._throttles.add(now, throttle, accesses)
        if any(throttles):
            return Decision(request, refused=cancelled(throttles))
        factor, flat = self._model.settings.transaction_factor, [access for each in actions for access in each]
        doubled = sum(access.units * (1.0 if access.target else factor) for access in flat)
        return Decision(request, estimated=doubled, access=next(iter(self._limited(flat)), None))


def _parts(operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, Wire, Wire]]:
    """Yield the table of each part of a batch, the part, and the request that it stands for."""
    for table, asked in request["RequestItems"].items():
        if operation == "BatchGetItem":
            consistent = asked.get("ConsistentRead", False)
            yield from ((table, key, {"Key": key, "ConsistentRead": consistent}) for key in asked["Keys"])
        else:
            yield from ((table, action, next(iter(action.values()))) for action in asked)


def _with_parts(operation: str, request: Mapping[str, Any], parts: Mapping[str, list[Wire]]) -> Wire:
    if operation == "BatchWriteItem":
        return dict(parts)
    return {table: {**request["RequestItems"][table], "Keys": keys} for table, keys in parts.items()}


def _sum(accesses: list[Access]) -> float:
    return sum(access.units for access in accesses)


def _accesses(request: Mapping[str, Any], *, reading: bool) -> Iterator[Access]:
    """Yield what a request consumes at least, as far as it shows: nothing if it concerns another table."""
    if "KeyConditionExpression" in request:
        yield from _query(request)
        return
    item = request.get("Item")
    key = request.get("Key", {}) if item is None else item
    if PK not in key or SK not in key:
        return
    place = key[PK]["S"], key[SK]["S"]
    if reading:
        yield Access(*place, _least_read(request), reading=True)
        return
    size = 0 if item is None else item_size(item)
    units = float(write_units(size))
    yield Access(*place, units, size=float(size))
    for index, names in ITEM_TABLE.indexes.items():
        if names.hash in key and names.sort in key:
            yield Access(key[names.hash]["S"], key[names.sort]["S"], units, target=index, size=float(size))


def _query(request: Mapping[str, Any]) -> Iterator[Access]:
    index = request.get("IndexName", TABLE)
    own = ITEM_TABLE.key if index == TABLE else ITEM_TABLE.indexes.get(index)
    if own is None:
        return
    names, values = names_of(request), values_of(request)
    for kind, *operands in _flat(_tree(request["KeyConditionExpression"])):
        if kind == "=" and operands[0][0] == "path" and operands[1][0] == "value":
            name = operands[0][1]
            hash_key = values.get(operands[1][1], {}).get("S")
            if names.get(name, name) == own.hash and hash_key is not None:
                yield Access(hash_key, "", _least_read(request), reading=True, target=index)


def _tree(text: str) -> Tree:
    try:
        return condition_tree(text)
    except RefusedError:
        # The engine says what is wrong with it.
        return ("unknown",)


def _flat(tree: Tree) -> Iterator[Tree]:
    return chain(_flat(tree[1]), _flat(tree[2])) if tree[0] == "and" else iter((tree,))


def _least_read(request: Mapping[str, Any]) -> float:
    return read_units(0, Consistency.STRONG if request.get("ConsistentRead") else Consistency.EVENTUAL)
