"""The actors that change counts by epochs: growth policies, an operator, and those who carry the resizes out.

Each is a process with a clock of its own. All may ask and act at the same time, and any may be killed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final, TypeVar

from dynashard import definition
from dynashard.errors import (
    DynashardError,
    KeyRangeThrottledError,
    ReshardRefusedError,
    ThrottleReason,
)
from dynashard.growth.requests import growth_of
from dynashard.growth.settings import GrowthSettings
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.runtime import Runtime
from dynashard.schema import TOPOLOGY_KEY
from dynashard.topology import Epoch, family_of
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.epochs.database import EpochDatabase
from dynashard_checks.schedules.epochs.plan import Clock, EpochPlan
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.resizes import Kills
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Killed, Scheduler
from dynashard_checks.schedules.traffic import LEASE, OPERATION, SKEW
from dynashard_checks.schedules.transport import ActorTransport
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY

T = TypeVar("T")
_HOT: Final = ThrottleReason("TableWriteKeyRangeThroughputExceeded", f"arn:x:table/{TABLE}")
_COUNTS: Final = (1, 2, 4, 8)
_COOLDOWN: Final = 60.0
_SLOW: Final = (*((0.0,) * 12), 1.0, 5.0, 20.0, 40.0)
"""By how many seconds a driver is late."""
_MOST_FROZEN: Final = 60
_FROZEN_SHARE: Final = 0.02
_LATE_SHARE: Final = 0.8
_FROZEN: Final = (5.0, 20.0, 40.0, 80.0, 120.0)
"""For how many seconds a process is frozen before it sends a request."""
_MOST_STEPS: Final = 150
"""Steps of one driver, after which resizes should long have ended."""


@dataclass
class Growing:
    """All resizes of a schedule.

    Attributes:
        database: the simulated database.
        plan: the plan.
        kills: kills processes of policies and drivers.
        asking: how many policies and operators may still ask for a count.
        over: whether nothing is asked for or under way any more.
        refused: the reasons of refused requests.
    """

    database: EpochDatabase
    plan: EpochPlan
    kills: Kills
    asking: int = 0
    over: bool = False
    refused: list[str] = field(default_factory=list)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of all actors."""
        return self.database.scheduler

    def start(self) -> None:
        """Add all actors to the schedule."""
        plan, spawn = self.plan, self.scheduler.spawn
        self.asking = len(plan.of_policies) + plan.operator
        for number, clock in enumerate(plan.of_policies):
            spawn(f"policy{number}", partial(self._asks, clock, self._grow))
        if plan.operator:
            spawn("operator", partial(self._asks, plan.of_drivers[0], self._operate))
        for number, clock in enumerate(plan.of_drivers):
            spawn(f"driver{number}", partial(self._drive, clock, not number))

    # What clients see of it.

    def turns(self, actor: Actor, operations: int) -> Iterator[bool]:
        """See `Pace.turns`. The kinds of operations are drawn anew for each."""
        for _ in range(operations):
            yield actor.random.random() < 0.5
            for _ in range(actor.random.choice((0, 0, 3, 20))):
                self.scheduler.pause(actor)

    def rest(self, actor: Actor) -> bool:
        """See `Pace.rest`. Mostly until just before or after an epoch begins; sometimes through several of them."""
        random, now = actor.random, self.scheduler.now
        if random.random() < 0.15:
            pause = random.choice((100.0, 200.0, 400.0))
        elif random.random() < 0.8:
            pause = self.database.beginnings.next_critical(random, now) - now + random.choice((0.0, 0.0, 0.5))
        else:
            pause = random.choice((0.0, 1.0, 5.0, 15.0, 29.0, 35.0))
        self.scheduler.idle(actor, pause)
        return not self.over or random.random() < 0.5

    # Policies and operators.

    def _asks(self, clock: Clock, ask: Callable[[Actor, Process], None], actor: Actor) -> None:
        """Run a process that asks for other counts now and then."""
        try:
            process = self._process(clock)
            for _ in range(self.plan.rounds):
                self.scheduler.idle(actor, actor.random.choice((0.0, 1.0, 20.0, 60.0, 90.0, 150.0)))
                self._attempt(actor, lambda: ask(actor, process))
        finally:
            self.asking -= 1

    def _grow(self, actor: Actor, process: Process) -> None:
        """Report throttles to a growth policy, or ask for a count as an operator does."""
        resharder = self._resharder(actor, process)
        if actor.random.random() < 0.3:
            resharder.start(self._scope(actor.random), actor.random.choice(_COUNTS))
            return
        settings = GrowthSettings(cooldown_seconds=_COOLDOWN)
        policy = growth_of(resharder, settings=settings, waits=actor.random.random() < 0.5)
        for _ in range(3):
            hot = KeyRangeThrottledError("hot", operation="PutItem", reasons=[_HOT])
            policy.throttled(self.plan.scope.entity, self.plan.scope.partition, hot)
            self.scheduler.idle(actor, actor.random.choice((0.0, 5.0, 15.0)))

    def _operate(self, actor: Actor, process: Process) -> None:
        """Abort a resize, or pause it and resume it later; or abort it and ask for another count."""
        resharder, scope = self._resharder(actor, process), self._scope(actor.random)
        if self.plan.mind_changed:
            scope, begins = self.plan.scope, max(self.database.beginnings.moments, default=0.0)
            self.scheduler.idle(actor, max(0.0, begins - actor.random.choice((2.0, 8.0, 16.0)) - self.scheduler.now))
            resharder.abort(scope)
            resharder.start(scope, actor.random.choice(_COUNTS))
            return
        if actor.random.random() < 0.5:
            resharder.abort(scope)
            return
        resharder.pause(scope)
        self.scheduler.idle(actor, actor.random.choice((1.0, 30.0, 100.0)))
        self._resharder(actor, process).resume(scope)

    def _scope(self, random: Random) -> Scope:
        one = self.plan.one_partition or random.random() < 0.5
        return self.plan.scope if one else Scope(self.plan.scope.entity)

    # Those who carry resizes out.

    def _drive(self, clock: Clock, first: bool, actor: Actor) -> None:  # noqa: FBT001 - partial takes it first
        """Run a driver, which is sometimes slow. The first one ends the schedule's resizes."""
        process, random = self._process(clock), actor.random
        for step in range(_MOST_STEPS):
            busy = self._attempt(actor, lambda: self._advance(actor, process))
            if busy is not None and first and not self.asking and not busy:
                self.over = True
            if self.over:
                return
            punctual = self.plan.overtaken or step >= _MOST_STEPS // 2
            slow = 0.0 if punctual else random.choice(_SLOW)
            self.scheduler.idle(actor, (1.0 if busy is None else busy or random.choice((2.0, 5.0, 20.0))) + slow)
        if first:
            raise AnomalyError("resizes do not end")

    def _advance(self, actor: Actor, process: Process) -> float:
        """Take the next step of each resize; return the seconds to wait before the next look; 0 if nothing is left."""
        resharder, waits = self._resharder(actor, process, confirms_late=self.plan.mind_changed), []
        for key in resharder.poll():
            step = resharder.advance(key)
            self.scheduler.note(actor, f"=== step of {key}: {step}")
            if step.kind == "wait":
                waits.append(max(step.seconds, 0.5))
        return min(waits, default=0.0)

    # Processes.

    def _process(self, clock: Clock) -> Process:
        return Process(self.scheduler, clock.off, clock.dated)

    def _resharder(self, actor: Actor, process: Process, *, confirms_late: bool = False) -> Resharder:
        """Return a resharder in a new process on the same machine."""
        return Resharder(
            GrowthTransport(
                self.database,
                actor,
                process,
                kills=self.kills,
                histories=self.database.placements.histories,
                confirms_late=confirms_late,
            ),
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[self.plan.model],
            timing=Timing(lease=LEASE, operation=OPERATION, skew=SKEW, lag=0.0, margin=self.plan.margin),
            runtime=Runtime(process.clock, lambda seconds: self.scheduler.sleep(actor, seconds), actor.random.random),
            new_id=lambda: f"change{next(self._ids)}",
        )

    def _attempt(self, actor: Actor, do: Callable[[], T]) -> T | None:
        """Do something in a new process; return None if it was killed or has failed."""
        try:
            return do()
        except ReshardRefusedError as error:
            self.refused.append(error.reason)
        except DynashardError as error:
            self.scheduler.note(actor, f"=== {type(error).__name__}: {error}")
            if not error.transient:
                raise
        except Killed:
            if actor.doomed:
                raise
            self.scheduler.note(actor, "=== killed")
        return None


@dataclass
class GrowthTransport(ActorTransport):
    """The transport of a policy, an operator or a driver, whose process may stand still or be killed at each request.

    Attributes:
        kills: kills its process.
        histories: the epochs that are stored.
        confirms_late: whether it often stands still between the decision to confirm an epoch and the request.
        dead: whether its process was killed.
    """

    kills: Kills = field(kw_only=True)
    histories: Mapping[str, Sequence[Epoch]] = field(kw_only=True)
    confirms_late: bool = False
    dead: bool = False

    def send_once(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """See `ActorTransport.send_once`."""
        if self.dead:
            raise Killed
        try:
            self._freeze(request)
            self.kills.strike()
            return super().send_once(operation, request)
        except Killed:
            self.dead = True
            raise

    def _freeze(self, request: Mapping[str, Any]) -> None:
        """Stand still for a while; at times before an epoch is confirmed, until the record has another one."""
        random, histories = self.actor.random, self.histories
        keys = [key[TOPOLOGY_KEY]["S"] for key in request.get("RequestItems", {}).get(TOPOLOGY, {"Keys": ()})["Keys"]]
        before = len(histories.get(keys[0], ())) if len(keys) == 1 else 0
        if before and ":" in keys[0] and self.confirms_late and random.random() < _LATE_SHARE:
            for _ in range(_MOST_FROZEN):
                if len(histories[keys[0]]) > before:
                    return
                self.database.scheduler.sleep(self.actor, 3.0)
        elif random.random() < _FROZEN_SHARE:
            self.database.scheduler.sleep(self.actor, random.choice(_FROZEN))


def records_of(plan: EpochPlan) -> list[str]:
    """Return the keys of the records of a schedule: that of its partition, and that of all partitions."""
    return [plan.scope.key, family_of(definition(plan.model))]
