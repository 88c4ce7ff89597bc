"""A schedule of a counter: clients take, add and read while its parts become more and requests fail or run late.

Each change creates an order in its own transaction. The simulated database notes between which turns the order was
executed, so what the counter could be at each turn is known, and each answer is compared with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any, Final

from dynashard import Create, Entity, Key, Registry, Shards, definition
from dynashard.codec import encode_value
from dynashard.errors import DynashardError
from dynashard.resharding import Scope
from dynashard.schema import PK, REV, SK, TYPE
from dynashard.topology import family_of
from dynashard.topology.records import encode, first_record
from dynashard.transport.interface import Wire
from dynashard_checks.counter_answers import OK, REFUSED, UNKNOWN, Asked, answer_of, judge
from dynashard_checks.schedules.clients import Client
from dynashard_checks.schedules.history import Check, History
from dynashard_checks.schedules.late import LateDatabase, LateFaults
from dynashard_checks.schedules.requests import KEYS
from dynashard_checks.schedules.resizes import Kills, Resize
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Killed, Scheduler
from dynashard_checks.schedules.traffic import LEASE, OPERATION, SKEW, Traffic
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, LeanWire, wiped
from dynashard_patterns import Counter, CounterStore
from dynashard_patterns.counters import bounds_of
from dynashard_patterns.counters.shares import Side

REGISTRY: Final = Registry()
_KEY: Final = {"tenant": "t", "id": "1"}
_ORDERS: Final = "c.v1.Order:"
_KINDS: Final = (("take", "take", "take", "add"), ("take", "take", "add", "value", "value"))
_MOST: Final = 3
_SIDES: Final[tuple[Side, Side]] = ("value", "spare")
_SLOW: Final = (0.4, 0.1)
"""The shares of reads that are slow, in schedules with faults: before the controller has begun, and after."""
_BEFORE: Final = (0, 20, 60, 120)
"""How many turns are left to others before the controller begins, and before what is late is executed."""


class Tickets(
    Counter,
    name="c.v1.Tickets",
    key=Key(partition="{tenant}:{id}"),
    floor=-2,
    ceiling=14,
    shards=Shards(start=1),
    registry=REGISTRY,
):
    """The counter."""

    tenant: str
    id: str


class Order(Entity, name="c.v1.Order", key=Key(partition="{id}"), registry=REGISTRY):
    """What proves that a change was made, and when."""

    id: str


class NoHistory(History):
    """Keeps nothing: the answers are judged by the orders."""

    def applied(self, pk: str, key: str, item: Mapping[str, Any] | None, check: Check | None) -> None:
        """Do nothing."""


@dataclass
class CountedDatabase(LateDatabase):
    """Notes between which turns orders were executed."""

    orders: dict[str, tuple[float, float]] = field(default_factory=dict)
    growing: bool = False

    def _draw_fault(self, operation: str, request: Mapping[str, Any], check: Check | None) -> str:
        """See `Database._draw_fault`. Reads of parts may be slow, so that their answers come after their views."""
        drawn, faults = super()._draw_fault(operation, request, check), self.faults
        read = operation == "TransactGetItems" or (operation == "BatchGetItem" and TABLE in request["RequestItems"])
        if read and not drawn and faults.rate and faults.random.random() < _SLOW[self.growing]:
            return "slow"
        return drawn

    def _transact(self, actor: Actor, request: Mapping[str, Any], check: Check | None) -> Wire:
        begun = self.scheduler.steps
        names = [
            action["Put"]["Item"]["id"]["S"]
            for action in request["TransactItems"]
            if action.get("Put", {}).get("Item", {}).get(PK, {}).get("S", "").startswith(_ORDERS)
        ]
        first = self._first

        def noted(*arguments: Any) -> Wire:
            answer = first(*arguments)
            # From here on it is executed, also if its sender is killed.
            self.orders.update((name, (begun, inf)) for name in names)
            return answer

        self.__dict__["_first"] = noted
        try:
            answer = super()._transact(actor, request, check)
        finally:
            self.__dict__.pop("_first", None)
        self.orders.update((name, (begun, self.scheduler.steps)) for name in names if self.orders[name][1] == inf)
        return answer


class CountingClient(Client):
    """A client that changes and reads the counter."""

    def __init__(self, traffic: Traffic, actor: Actor, asked: list[Asked]) -> None:
        super().__init__(traffic, actor)
        self._asked = asked
        self._counters = CounterStore(self._store, Tickets)
        self._bounds = bounds_of(Tickets)

    def value(self) -> None:
        """Read the value."""
        self._do_value()

    def _do_value(self) -> None:
        start = self._begin()
        try:
            self._note("", 0, start, OK, self._counters.value(_KEY))
        except DynashardError as error:
            self._require_transient(error)
        finally:
            self._actor.topology_read_at = None

    def _do_take(self) -> None:
        self._change(adds=False)

    def _do_add(self) -> None:
        self._change(adds=True)

    def _change(self, *, adds: bool) -> None:
        amount = self._random.randint(1, _MOST)
        change = self._counters.add if adds else self._counters.take
        order = Order(id=f"o{next(self._traffic.values)}")
        signed, start = amount if adds else -amount, self._begin()

        def changed() -> None:
            try:
                change(_KEY, amount, Create(order))
            except DynashardError as error:
                self._require_transient(error)
                raise

        try:
            said, value = answer_of(changed, self._bounds, adds=adds)
        except Killed:
            self._note(order.id, signed, start, UNKNOWN)
            raise
        finally:
            self._actor.topology_read_at = None
        self._traffic.gave_up += said in (REFUSED, UNKNOWN)
        self._note(order.id, signed, start, said, value)

    def _begin(self) -> int:
        self._actor.topology_read_at = self._scheduler.now
        return self._scheduler.steps

    def _note(self, order: str, amount: int, start: int, said: str, value: int | None = None) -> None:
        asked = Asked(order, amount, start, self._scheduler.steps, said, value)
        self._scheduler.note(self._actor, f"=== {asked}")
        self._asked.append(asked)

    def _require_transient(self, error: DynashardError) -> None:
        if error.code != "exhausted" and not error.transient and error.code != "outcome_unknown":
            raise AnomalyError(f"a change failed: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a schedule."""

    operations: int
    answered: int
    exhausted: int
    calls: int
    parts: int


class CounterSchedule:
    """A schedule on an engine with empty tables; `seed` determines all of it."""

    def __init__(self, wire: LeanWire, seed: int, trace: list[str] | None = None) -> None:
        random = self._random = Random(seed ^ 0xC0FFEE)
        self._wire = wire
        self._scheduler = Scheduler(Random(seed ^ 0x7142), operation=OPERATION, ticked=lambda: None)
        self._scheduler.trace = trace
        faults = LateFaults(Random(seed ^ 0xFA17), random.choice((0.0, 0.05, 0.15, 0.3)), left=16)
        history = NoHistory(self._scheduler.clock, skew=SKEW, values_known=False)
        self._database = CountedDatabase(wire, self._scheduler, history, faults)
        self._origin = random.choice((1, 1, 2, 4))
        target = self._origin * random.choice((2, 2, 4))
        self._kills = Kills(Random(seed ^ 0x4111), random.choice((0.0, 0.0, 0.05)))
        self._entity = definition(Tickets)
        self._resize = Resize(self._database, Tickets, Scope(self._entity), target, self._kills, begun=False)
        self._traffic = Traffic(self._database, Tickets, (), _KINDS, indexes=())
        self._asked: list[Asked] = []
        self._begun = 0
        if random.random() < 0.5:
            self._database.delay = self._delay

    def run(self) -> Outcome:
        """Run the schedule to its end; raises `AnomalyError` if an answer is false."""
        calls = self._wire.calls
        try:
            self._prepare()
            for number in range(self._random.choice((2, 2, 3, 4))):
                self._scheduler.spawn(f"client{number}", self._client)
            self._scheduler.spawn("controller", self._control)
            self._scheduler.run()
            self._database.faults.rate = self._kills.rate = 0.0
            self._scheduler.spawn("finisher", self._finish)
            self._scheduler.run()
            stored = self._check()
        finally:
            for table, names in KEYS.items():
                wiped(self._wire, table, names)
        answers = [each.said for each in self._asked]
        return Outcome(
            len(answers),
            sum(said not in (REFUSED, UNKNOWN) for said in answers),
            answers.count("exhausted"),
            self._wire.calls - calls,
            len(stored),
        )

    def _prepare(self) -> None:
        """Store a counter whose parts have some of it, and the count of its parts."""
        bounds, random = bounds_of(Tickets), self._random
        rooms = [random.randrange(4) for _ in range(self._origin)]
        values = [room + bounds.least("value", part) for part, room in enumerate(rooms)]
        self._begun = sum(values)
        spares = [0] * self._origin
        spares[0] = -self._begun
        for part in range(1, self._origin):
            moved = random.randrange(3) if spares[0] - 3 >= bounds.least("spare", 0) else 0
            spares[part], spares[0] = moved, spares[0] - moved
        for part, (value, spare) in enumerate(zip(values, spares, strict=True)):
            item = Tickets(**_KEY, part=part, value=value, spare=spare)
            key = self._entity.key_of(item)
            wire = {PK: {"S": f"{key.partition}:{part}"}, SK: {"S": key.sort}, TYPE: {"S": self._entity.name}}
            wire |= {REV: {"S": f"first.{part}"}, **self._entity.encode(item.__dict__)}
            self._wire.call("PutItem", {"TableName": TABLE, "Item": wire})
        record = first_record(family_of(self._entity), self._origin, now=self._scheduler.now - 1000, lease=LEASE)
        self._wire.call("PutItem", {"TableName": TOPOLOGY, "Item": encode(record)})

    def _client(self, actor: Actor) -> None:
        CountingClient(self._traffic, actor, self._asked).run(self._random.choice((2, 3, 5)), self._resize)

    def _delay(self, actor: Actor) -> None:
        """Wait until the parts have become more, and until others have changed them."""
        self._resize.delay(actor)
        for _ in range(actor.random.choice(_BEFORE)):
            self._scheduler.pause(actor)

    def _control(self, actor: Actor) -> None:
        for _ in range(actor.random.choice(_BEFORE)):
            self._scheduler.pause(actor)
        self._database.growing = True
        self._resize.control(actor)

    def _finish(self, actor: Actor) -> None:
        client = CountingClient(self._traffic, actor, self._asked)
        client.value()

    def _check(self) -> Sequence[Wire]:
        items = self._wire.call("Scan", {"TableName": TABLE, "ConsistentRead": True})["Items"]
        orders = {item["id"]["S"] for item in items if item[PK]["S"].startswith(_ORDERS)}
        if orders != self._database.orders.keys():
            raise AnomalyError(f"orders are stored that were not executed: {orders ^ self._database.orders.keys()}")
        parts = [item for item in items if item[PK]["S"].startswith(f"{self._entity.name}:")]
        numbers = {side: {int(each[SK]["S"]): int(each[side]["N"]) for each in parts} for side in _SIDES}
        value, bounds = sum(numbers["value"].values()), bounds_of(Tickets)
        moments = {name: (start, end) for name, (start, end) in self._database.orders.items()}
        false = judge(self._asked, moments, value, self._begun, bounds)
        if value + sum(numbers["spare"].values()) != 0:
            false.append(f"value and spare differ: {numbers}")
        false += [
            f"part {part} has {number}, beyond its bound"
            for side in _SIDES
            for part, number in numbers[side].items()
            if number < bounds.least(side, part)
        ]
        record = self._database.record(family_of(self._entity))
        most = self._origin if record is None else record.count
        false += [f"part {encode_value(part)} is beyond the {most} parts" for part in numbers["value"] if part >= most]
        if false:
            raise AnomalyError("; ".join(false[:3]))
        return parts


def run_counter(wire: LeanWire, seed: int, *, trace: list[str] | None = None) -> Outcome:
    """Run the schedule of a seed; raises `AnomalyError` if the code under test broke a promise."""
    return CounterSchedule(wire, seed, trace).run()
