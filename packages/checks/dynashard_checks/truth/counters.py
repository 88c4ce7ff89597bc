"""Judge the answers of a counter with a floor and a ceiling while requests fail and its parts become more.

Callers take from one counter, add to it and read it, all at the same time. More is asked for than there is. Each change
creates an item of its own in the same transaction, which shows when all is over whether the change was made. Meanwhile
the number of parts doubles again and again. What is required:

- the value is the sum of what was done, to the unit, and no read is beyond the bounds;
- an answer other than `outcome_unknown` is true;
- a value that was read, or that a refusal reports, was the counter's at some moment between question and answer.
"""

import time
from collections import Counter as Tally
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random
from threading import Event
from typing import Any, Final

from dynashard import Create, Dynashard, Entity, Key, Registry, RetryPolicy, Shards, definition
from dynashard.errors import DynashardError, ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.topology import Phase
from dynashard.transport import connect
from dynashard.transport.interface import Transport
from dynashard_checks.counter_answers import OK, REFUSED, Asked, answer_of, judge
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY
from dynashard_checks.threads import at_work
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.world import FaultyEngine, faulty_engine
from dynashard_patterns import Counter, CounterStore
from dynashard_patterns.counters import bounds_of

RATES: Final = Rates(0.07, 0.19)
"""26% of all requests, 7% of them lost or late."""
_REGISTRY: Final = Registry()
_KEY: Final = {"tenant": "t", "id": "1"}
_FLOOR: Final = -5
_CEILING: Final = 5_000
_LEASE: Final = 0.3
_OPERATION: Final = 2.0
_MOST_PARTS: Final = 64
_LONGEST_START: Final = 30.0
_SECRET: Final = ("a secret of this check only",)
_ADDED, _READ = 0.08, 0.06
"""The shares of additions and reads; all others take."""
_MOST: Final = 3
"""The most that is taken or added at once."""


class Tickets(
    Counter,
    name="truth.v1.Tickets",
    key=Key(partition="{tenant}:{id}"),
    floor=_FLOOR,
    ceiling=_CEILING,
    shards=Shards(start=2),
    registry=_REGISTRY,
):
    """The counter."""

    tenant: str
    id: str


class Order(Entity, name="truth.v1.Order", key=Key(partition="{id}"), registry=_REGISTRY):
    """What proves that a change was made."""

    id: str


@dataclass
class Verdict:
    """The result of a run.

    Attributes:
        answers: how many there were of each, by what was asked.
        false: a line for each answer that is not true, and for each bound that was passed.
        value: the value in the end.
        wanted: the sum of what was done.
        parts: how many there were in the end.
        engine: requests and faults.
    """

    answers: Tally[str] = field(default_factory=Tally)
    false: list[str] = field(default_factory=list)
    value: int = 0
    wanted: int = 0
    parts: int = 0
    engine: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {**vars(self), "answers": dict(sorted(self.answers.items())), "false": len(self.false)}


@dataclass
class Run:
    """A run on an engine.

    Attributes:
        engine: the engine behind the proxy.
        seed: determines what callers ask for.
        callers: how many there are at a time.
    """

    engine: FaultyEngine
    seed: int
    callers: int
    stop: Event = field(default_factory=Event)
    growing: Event = field(default_factory=Event)

    def judged(self, operations: int, rates: Rates) -> Verdict:
        """Let the callers ask, read everything, and judge the answers."""
        clean = self._open(f"http://127.0.0.1:{self.engine.wire.port}")
        counters = CounterStore.on(clean, Tickets)
        begun = min(operations, _CEILING - 10)
        counters.add(_KEY, begun)
        # Two processes, each with a view of its own.
        processes = [self._open(self.engine.endpoint) for _ in range(2)]
        self.engine.fail(rates)
        with at_work(self._grow):
            try:
                # Callers begin while the parts become more for the first time.
                self.growing.wait(_LONGEST_START)
                with ThreadPoolExecutor(self.callers) as pool:
                    asked = list(pool.map(lambda number: self._ask(processes[number % 2], number), range(operations)))
            finally:
                self.stop.set()
        self.engine.fail(Rates())
        time.sleep(rates.late)
        done = {order.id for order in self._orders(clean, asked)}
        found = counters.parts(_KEY)
        verdict = Verdict(Tally(f"{_what(each)} {each.said}" for each in asked), value=found.total)
        verdict.wanted = begun + sum(each.amount for each in asked if each.order in done)
        moments = {each.order: (each.start, each.end if each.said == OK else inf) for each in asked}
        verdict.false = judge(asked, {name: moments[name] for name in done}, found.total, begun, bounds_of(Tickets))
        verdict.false += [
            f"part {part} is {room} beyond its bound"
            for side in ("value", "spare")
            for part, room in enumerate(bounds_of(Tickets).rooms(side, found.numbers(side)))
            if room < 0
        ]
        verdict.parts = len(found.items)
        if not self.growing.is_set():
            verdict.false.append("the parts did not become more, so nothing was asked meanwhile")
        verdict.engine = self.engine.log()[0]
        return verdict

    def _transport(self, endpoint: str) -> Transport:
        return connect(endpoint, "us-east-1", access_key="local", secret_key="local", attempts=2)  # noqa: S106 - none

    def _open(self, endpoint: str) -> Dynashard:
        return Dynashard(
            self._transport(endpoint),
            table=TABLE,
            topology_table=TOPOLOGY,
            cursor_keys=_SECRET,
            lease=_LEASE,
            growth="off",
            retry_policy=RetryPolicy(seconds=2.0),
            operation_seconds=_OPERATION,
        )

    def _ask(self, db: Dynashard, number: int) -> Asked:
        random = Random(self.seed * 1_000_003 + number)
        counters, drawn = CounterStore.on(db, Tickets), random.random()
        start = time.monotonic()
        if drawn < _READ:
            value, said = None, OK
            try:
                value = counters.value(_KEY)
            except DynashardError:
                said = REFUSED
            return Asked("", 0, start, time.monotonic(), said, value)
        amount, adds = random.randint(1, _MOST), drawn < _READ + _ADDED
        order, change = Order(id=f"o{number}"), counters.add if adds else counters.take
        said, value = answer_of(lambda: change(_KEY, amount, Create(order)), bounds_of(Tickets), adds=adds)
        return Asked(order.id, amount if adds else -amount, start, time.monotonic(), said, value)

    def _orders(self, clean: Dynashard, asked: Sequence[Asked]) -> list[Order]:
        found = clean.collection(Order).batch_get([{"id": each.order} for each in asked if each.order], consistent=True)
        return [order for order in found if order is not None]

    def _grow(self) -> None:
        """Double the parts as soon as they may, until there are as many as there can be."""
        entity = definition(Tickets)
        scope = Scope(entity, entity.logical_partition(_KEY))
        resharder = Resharder(
            self._transport(self.engine.endpoint),
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[Tickets],
            timing=Timing(lease=_LEASE, operation=_OPERATION, skew=0.1, lag=0.0),
        )
        while not self.stop.is_set():
            with suppress(DynashardError):
                record = resharder.topology.find(scope.key)
                count = 2 if record is None else record.count
                if record is not None and record.phase is Phase.PREPARE:
                    self.growing.set()
                if count < _MOST_PARTS:
                    with suppress(ReshardRefusedError):
                        resharder.start(scope, count * 2)
                for key in resharder.poll():
                    resharder.advance(key)
            self.stop.wait(0.2)


def _what(each: Asked) -> str:
    return "read" if not each.order else "add" if each.amount > 0 else "take"


def run_counters(operations: int, *, callers: int = 16, rates: Rates = RATES, seed: int = 1) -> Verdict:
    """Let callers change and read one counter on an engine of its own, and judge the answers.

    Args:
        operations: how many questions are asked, nine in ten of which take.
        callers: how many there are at a time.
        rates: the rates of faults.
        seed: determines the questions, and the faults of requests.
    """
    with faulty_engine(seed) as engine:
        return Run(engine, seed, callers).judged(operations, rates)
