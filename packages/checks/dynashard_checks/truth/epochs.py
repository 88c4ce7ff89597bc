"""Check answers about items placed by epochs, while counts change, clocks are off, and requests fail.

Clients whose clocks are off by up to the bound share keys of the present. Meanwhile two processes with clocks of their
own change the counts of all partitions again and again. The proxy affects the requests of all of them. One more client
has a clock that is off by much more: none of its writes may be accepted.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Event
from typing import Any, Final

from dynashard import Dynashard, Entity, definition
from dynashard.errors import DynashardError, ReshardRefusedError
from dynashard.key_clock import ClockBounds
from dynashard.key_time import KSUID
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK
from dynashard.topology import EpochState
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.interface import Settings, Transport
from dynashard_checks.linearizability.checker import check_all
from dynashard_checks.linearizability.listings import misses_and_doubles
from dynashard_checks.linearizability.model import Answer
from dynashard_checks.schedules.entities import TimedGuardedNote, TimedNote, TimedOnceNote
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY, scanned
from dynashard_checks.threads import at_work
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.timed_clients import History, Keys, TimedClient
from dynashard_checks.truth.world import FaultyEngine, faulty_engine

MODELS: Final[dict[str, type[Entity]]] = {
    "plain": TimedNote,
    "guarded": TimedGuardedNote,
    "exactly-once": TimedOnceNote,
}
_BOUNDS: Final = ClockBounds(off=1.0, ahead=1.0)
_LEASE: Final = 1.0
_TIMING: Final = Timing(lease=_LEASE, operation=10.0, skew=0.0, lag=0.0, clocks=_BOUNDS, margin=3.0)
_FAR_OFF: Final = 60.0
_COUNTS: Final = (1, 2, 4, 8, 16)
_SECRET: Final = ("a secret of this check only",)


@dataclass
class Verdict:
    """The result of a run.

    Attributes:
        operations, listings: how many were judged.
        keys: how many keys were judged.
        violations: answers that no order of the operations explains, wrong listings, and items that are stored twice.
        strange: errors that a client should never get.
        unknown: operations of unknown outcome.
        refused: operations that were refused without effect, by their error.
        epochs: how many epochs were published, by their state.
        by_later: how many stored items are placed by an epoch after the first of their partition.
        off_accepted, off_refused: writes of the client whose clock is far off.
        engine: requests and faults.
    """

    operations: int = 0
    listings: int = 0
    keys: int = 0
    violations: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    unknown: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    epochs: Counter[str] = field(default_factory=Counter)
    by_later: int = 0
    off_accepted: int = 0
    off_refused: int = 0
    engine: dict[str, Any] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """A line for each thing that is wrong, and for each that was to be checked and did not happen."""
        found = [*self.violations, *self.strange]
        found += [f"{self.off_accepted} writes by a clock that is far off were accepted"] if self.off_accepted else []
        found += [] if self.off_refused else ["no write by a clock that is far off was refused, so none was judged"]
        return found + ([] if self.epochs else ["no epoch was published, so no count has grown"])

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON values."""
        return {
            **vars(self),
            "violations": len(self.violations),
            "strange": len(self.strange),
        }


@dataclass
class Run:
    """A run on an engine.

    Attributes:
        engine: the engine behind the proxy.
        level: a write guarantee of `MODELS`.
        clients: how many clients whose clocks are right to the bound.
        seed: determines what they do.
    """

    engine: FaultyEngine
    level: str
    clients: int
    seed: int
    stop: Event = field(default_factory=Event)
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self.model = MODELS[self.level]
        self.keys = Keys(("a", "b"), _BOUNDS.ahead)
        entity = definition(self.model)
        self.scopes = [Scope(entity, entity.logical_partition({"tenant": tenant})) for tenant in self.keys.tenants]

    def judged(self, operations: int) -> Verdict:
        """Run the clients, read everything, and judge the answers."""
        reader = self._client(self.clients + 1, 0.0)
        for tenant in self.keys.tenants:
            # The records exist before requests fail.
            reader.list(tenant)
        workers = [self._client(number, self._off(number)) for number in range(self.clients)]
        wrong = self._client(self.clients, _FAR_OFF, knows=True)
        self.engine.fail(Rates(0.07, 0.19))
        growers = [partial(self._grow, number) for number in range(2)]
        with at_work(*growers, partial(wrong.run, operations, self.stop)):
            try:
                with ThreadPoolExecutor(self.clients) as pool:
                    for running in [pool.submit(each.run, operations // self.clients, self.stop) for each in workers]:
                        running.result()
            finally:
                self.stop.set()
        self.engine.fail(Rates())
        time.sleep(Rates().late)
        self._read_all(reader)
        return self._verdict(wrong)

    def _off(self, number: int) -> float:
        """Return how far a client's clock is off: by the bound in both directions, and less."""
        return (-1.0, 1.0, -0.5, 0.5, 0.0)[number % 5] * _BOUNDS.off

    def _runtime(self, off: float) -> Runtime:
        return Runtime(clock=lambda: time.time() + off)

    def _transport(self, off: float = 0.0) -> Transport:
        settings = Settings(self.engine.endpoint, "us-east-1", "local", "local")
        return transport_for(settings, {}, Attempts(runtime=self._runtime(off)))

    def _client(self, number: int, off: float, *, knows: bool = False) -> TimedClient:
        """Return a client. One that does not know how far its clock is off has a transport whose clock is right."""
        runtime = self._runtime(off)
        db = Dynashard(
            self._transport(off if knows else 0.0),
            table=TABLE,
            topology_table=TOPOLOGY,
            cursor_keys=_SECRET,
            lease=_LEASE,
            runtime=runtime,
            clocks=_BOUNDS,
            growth="off",
        )
        random = Random(self.seed * 1000 + number)
        history = History() if knows else self.history
        guarded = self.level == "guarded"
        # Keys that were made by a clock that is far off would be refused for their own time.
        clock = time.time if knows else runtime.clock
        return TimedClient(db.collection(self.model), clock, number, random, self.keys, history, guarded)

    def _grow(self, number: int) -> None:
        """Change counts again and again, as one of two processes that do."""
        random = Random(self.seed * 77 + number)
        resharder = Resharder(
            self._transport(),
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[self.model],
            timing=_TIMING,
            runtime=self._runtime((-1) ** number * _BOUNDS.off),
        )
        while not self.stop.is_set():
            with suppress(DynashardError):
                scope = random.choice(self.scopes)
                with suppress(ReshardRefusedError):
                    resharder.start(scope, random.choice(_COUNTS))
                for key in resharder.poll():
                    resharder.advance(key)
                self._note_beginnings(resharder)
            self.stop.wait(random.random())

    def _note_beginnings(self, resharder: Resharder) -> None:
        for tenant, scope in zip(self.keys.tenants, self.scopes, strict=True):
            record = resharder.topology.find(scope.key)
            if record is not None:
                self.keys.moments[tenant] = [KSUID.moment_of(each.first) for each in record.epochs[-2:] if each.first]

    def _read_all(self, reader: TimedClient) -> None:
        for subject in sorted(self.keys.used):
            reader.get(subject)
        for tenant in self.keys.tenants:
            reader.list(tenant)

    def _verdict(self, wrong: TimedClient) -> Verdict:
        operations, listings = self.history.named(), self.history.listings
        every = [each for some in operations.values() for each in some]
        verdict = Verdict(
            operations=sum(each.name != "listed" for each in every),
            listings=len(listings),
            keys=len(operations),
            strange=self.history.strange + wrong.history.strange,
            unknown=sum(each.answer is Answer.UNKNOWN for each in every),
            refused=dict(self.history.refused),
            off_accepted=wrong.accepted,
            off_refused=wrong.clock_refused,
            engine=self.engine.log()[0],
        )
        verdict.violations = [f"{subject}: {found}" for subject, found in check_all(operations).items()]
        for tenant, listing in listings:
            own = {key: done for (owner, key), done in operations.items() if owner == tenant}
            verdict.violations += misses_and_doubles(own, listing)
        self._add_stored(verdict)
        return verdict

    def _add_stored(self, verdict: Verdict) -> None:
        """Check that no item is stored twice, and count those that later epochs place."""
        items = list(scanned(self.engine.wire, TABLE))
        places = Counter((item[SK]["S"], item["tenant"]["S"]) for item in items)
        verdict.violations += [f"{key} is stored {number} times" for key, number in places.items() if number > 1]
        resharder = Resharder(self.engine.wire, table=TABLE, topology_table=TOPOLOGY, entities=[self.model])
        for scope in self.scopes:
            record = resharder.topology.find(scope.key)
            later = [] if record is None else record.epochs[1:]
            verdict.epochs.update(each.state.value for each in later)
            firsts = [each.first for each in later if each.state is EpochState.CONFIRMED]
            mine = [item for item in items if item[PK]["S"].startswith(f"{scope.partition}:")]
            verdict.by_later += sum(bool(firsts) and item[SK]["S"] >= firsts[0] for item in mine)


def run_epochs(operations: int, *, level: str = "plain", clients: int = 10, seed: int = 1) -> Verdict:
    """Run clients and resizes on an engine of their own, and judge the answers."""
    with faulty_engine(seed) as engine:
        return Run(engine, level, clients, seed).judged(operations)
