"""The actors that change a count: a controller, movers that are killed and restarted, and an operator."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final, TypeVar

from dynashard import definition
from dynashard.errors import DynashardError, ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.runtime import Runtime
from dynashard.topology import Phase, Record
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.database import Database
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.scheduler import Actor, AnomalyError, Killed, Scheduler
from dynashard_checks.schedules.traffic import LEASE, OPERATION, SKEW
from dynashard_checks.schedules.transport import ActorTransport
from dynashard_checks.schedules.wire import TABLE, TOPOLOGY

T = TypeVar("T")
# A transaction may be visible in part for as long as its sender is allowed, so `lag` is longer.
TIMING: Final = Timing(lease=LEASE, operation=OPERATION, skew=SKEW, lag=OPERATION + SKEW)
SURVEY_SHARE: Final = 0.1
"""The share of resizes that count the items first. This has no effect, but takes turns."""
_LONGEST_WAIT_TURNS: Final = 60
"""How many turns an actor waits for another at most."""
_EARLY_SHARE: Final = 0.5
LATE_STAGES: Final = (5, 6, 6, 6, 7, 7, 8, 8, 9, 10, 10, 11, 12)
"""The stages at which late requests are executed, from the first pass of the mover."""
_READS: Final = frozenset({"BatchGetItem", "GetItem"})


@dataclass
class Kills:
    """Kills processes at random.

    Attributes:
        random: draws which requests kill their process.
        rate: the share of requests that do.
        left: how many processes may still be killed.
        struck: how many were killed.
    """

    random: Random
    rate: float = 0.0
    left: int = 4
    struck: int = 0

    def strike(self) -> None:
        """Kill the calling process at random.

        Raises:
            Killed: it is killed.
        """
        if self.rate and self.left and self.random.random() < self.rate:
            self.left -= 1
            self.struck += 1
            raise Killed


@dataclass
class Resize:
    """A resize, driven by several actors.

    Attributes:
        database: the simulated database.
        model: the entity.
        scope: the scope of the resize.
        to: the count after the resize.
        kills: kills its processes.
        begun: whether the resize was requested before the clients started.
        rewrite: whether the entries of an index are to be rewritten; None leaves it to the resharder.
        tasks: the tasks that were open at the last advance. Movers may work on tasks that are done.
        due: when the controller advances the resize again.
        stage: how many phases and times of work the resize has reached.
        early_clients: how many clients are about to read the topology before the next publication.
        later_operations: how many operations the other clients have done.
        over: whether the controller has seen the end of the resize.
        refused: the reasons of refused requests.
        ids: numbers the ids of resizes.
    """

    database: Database
    model: type[Any]
    scope: Scope
    to: int
    kills: Kills
    begun: bool
    rewrite: bool | None = None
    tasks: tuple[int, ...] = ()
    over: bool = False
    refused: list[str] = field(default_factory=list)
    due: float = 0.0
    stage: int = 0
    early_clients: int = 0
    later_operations: int = 0
    _label: Any = None
    ids: Any = field(default_factory=lambda: count(1))

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of all actors."""
        return self.database.scheduler

    def resharder(self, actor: Actor) -> Resharder:
        """Return a resharder in a new process."""
        transport = ResharderTransport(self.database, actor, Process(self.scheduler), kills=self.kills)
        return Resharder(
            transport,
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[self.model],
            timing=TIMING,
            runtime=Runtime(
                self.scheduler.clock, lambda seconds: self.scheduler.sleep(actor, seconds), actor.random.random
            ),
            segments=2,
            new_id=lambda: f"change{next(self.ids)}",
        )

    def run_to_stage(self, actor: Actor, *, stages: int) -> None:
        """Request the resize, and advance it to a stage before other actors start."""
        self._retry(actor, lambda resharder: resharder.start(self.scope, self.to, survey=False, rewrite=self.rewrite))
        while self.stage < stages and not self.over:
            step = self._attempt(actor, self._advance) or {}
            self._count_stage(step)
            for task in step.get("tasks", ()):
                while not self._attempt(actor, partial(self._work, task)):
                    self.scheduler.idle(actor, 1.0)
            self.over = step.get("kind") == "done"
            self.scheduler.idle(actor, float(step.get("seconds", 1.0)))

    def control(self, actor: Actor) -> None:
        """Run the controller, which starts the resize and publishes its phases."""
        if not self.begun:
            survey = actor.random.random() < SURVEY_SHARE
            self._retry(
                actor, lambda resharder: resharder.start(self.scope, self.to, survey=survey, rewrite=self.rewrite)
            )
        self._pass_turns(actor)
        self._await_early_clients(actor)
        while not self.over:
            step: dict[str, Any] = self._attempt(actor, self._advance) or {}
            self.scheduler.note(actor, f"=== step {step}")
            self.tasks = tuple(step.get("tasks") or ())
            self._count_stage(step)
            if not step:
                pause = 1.0
            elif step["kind"] == "done":
                self.over = self.is_stable()
                pause = 5.0
            else:
                pause = max(1.0, float(step["seconds"]))
            self.due = self.scheduler.now + pause
            self.scheduler.idle(actor, 0.0 if self.over else pause)
            self._pass_turns(actor)
            self._await_movers(actor)
            self._await_early_clients(actor)

    def _count_stage(self, step: Mapping[str, Any]) -> None:
        """Count the stages of the resize: its phases and times of work."""
        record = self._record()
        label = record and (record.phase, record.target, step.get("kind") == "work")
        self.stage += label != self._label
        self._label = label

    def _pass_turns(self, actor: Actor) -> None:
        """Let some turns pass without time, so that phases are published in the middle of operations."""
        for _ in range(actor.random.choice((0, 0, 2, 5, 10, 30))):
            self.scheduler.pause(actor)

    def _await_early_clients(self, actor: Actor) -> None:
        """Wait until early clients have read the topology: they act on the old phase after its end."""
        for _ in range(_LONGEST_WAIT_TURNS):
            if not self.early_clients:
                return
            self.scheduler.pause(actor)

    def turns(self, actor: Actor, operations: int) -> Iterator[bool]:
        """Yield before each operation, at times around a publication.

        An early client reads the topology before the publication. It acts on that view after other clients have acted
        on the new one. Yields whether the client is early.
        """
        early = actor.random.random() < _EARLY_SHARE
        for number in range(operations):
            if number == early:
                self._await(actor, self._published)
                if early:
                    self._await(actor, actor.random.choice((self._acted, self._acted, self._published)))
            self.early_clients += early and number == 0
            yield early
            self.early_clients -= early and number == 0
            self.later_operations += not early

    def _published(self) -> int:
        return self.stage

    def _acted(self) -> int:
        return self.later_operations

    def _await(self, actor: Actor, what: Callable[[], int]) -> None:
        """Let turns pass until a number has changed, up to a limit; sometimes do not wait."""
        before = what()
        for _ in range(actor.random.choice((0, _LONGEST_WAIT_TURNS, _LONGEST_WAIT_TURNS))):
            if what() != before or self.over:
                return
            self.scheduler.pause(actor)

    def _await_movers(self, actor: Actor) -> None:
        """Wait until the movers believe that they are done, or for a long time."""
        for _ in range(actor.random.choice((0, 100))):
            if not self.tasks:
                return
            self.due = self.scheduler.now + 1.0
            self.scheduler.idle(actor, 1.0)

    def rest(self, actor: Actor) -> bool:
        """Wait for a while, mostly until just before a later phase is published, which is the critical time."""
        stage = self.stage + actor.random.choice((0, 0, 1, 1, 2))
        while self.stage < stage and not self.over:
            self.scheduler.idle(actor, max(0.5, self.due - self.scheduler.now))
        pause = actor.random.choice((0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 15.0, 35.0))
        if actor.random.random() < 0.8:
            pause += max(0.0, self.due - self.scheduler.now)
        self.scheduler.idle(actor, pause)
        self._pass_turns(actor)
        return not self.over or actor.random.random() < 0.5

    def delay(self, actor: Actor) -> None:
        """Wait until the resize has reached a later stage or its end, and for some more turns."""
        stage = actor.random.choice([each for each in LATE_STAGES if each > self.stage] or [self.stage])
        for _ in range(_LONGEST_WAIT_TURNS):
            if self.stage >= stage or self.over:
                break
            self.scheduler.idle(actor, max(0.5, self.due - self.scheduler.now))
        self._pass_turns(actor)

    def is_stable(self) -> bool:
        """Return whether the resize has ended, according to the topology records."""
        record, family = self._record(), self._record(family=True)
        if record is None or family is None or family.active:
            return record is None
        return record.phase is Phase.STABLE and record.target is None and record.swept

    def _record(self, *, family: bool = False) -> Record | None:
        return self.database.record(self.scope.family if family else self.scope.key)

    def _advance(self, resharder: Resharder) -> dict[str, Any]:
        return resharder.advance(self.scope.key).as_dict()

    def _work(self, task: int, resharder: Resharder) -> bool:
        return resharder.work(self.scope.key, task, seconds=5.0)

    def move(self, actor: Actor) -> None:
        """Run a mover, which works on tasks until the resize is over."""
        while not self.over:
            tasks = self.tasks
            if not tasks:
                self.scheduler.idle(actor, max(1.0, self.due - self.scheduler.now))
                continue
            task = actor.random.choice(tasks)
            if self._attempt(actor, partial(self._work, task)) and actor.random.random() < 0.8:
                self.tasks = tuple(each for each in self.tasks if each != task)
            self.scheduler.pause(actor)

    def interfere(self, actor: Actor) -> None:
        """Run an operator, who pauses and resumes the resize, or aborts it."""
        self.scheduler.idle(actor, actor.random.choice((1.0, 40.0, 70.0, 130.0, 190.0, 250.0)))
        if self.over:
            return
        if actor.random.random() < 0.5:
            self._retry(actor, lambda resharder: resharder.abort(self.scope))
            return
        self._retry(actor, lambda resharder: resharder.pause(self.scope))
        self.scheduler.idle(actor, actor.random.choice((1.0, 30.0, 100.0)))
        self._retry(actor, lambda resharder: resharder.resume(self.scope))

    def _retry(self, actor: Actor, do: Callable[[Resharder], object]) -> None:
        for _ in range(100):
            try:
                if self._attempt(actor, do) is not None:
                    return
            except ReshardRefusedError as error:
                self.refused.append(error.reason)
                return
            self.scheduler.idle(actor, 1.0)
        raise AnomalyError("the controller makes no progress")

    def _attempt(self, actor: Actor, do: Callable[[Resharder], T]) -> T | None:
        """Do something in a new process. Return None if it was killed, or failed with a transient error."""
        actor.topology_read_at = self.scheduler.now
        try:
            return do(self.resharder(actor))
        except DynashardError as error:
            self.scheduler.note(actor, f"=== {type(error).__name__}: {error}")
            if isinstance(error, ReshardRefusedError) or not error.transient:
                raise
        except Killed:
            if actor.doomed:
                raise
            self.scheduler.note(actor, "=== killed")
        finally:
            actor.topology_read_at = None
        return None


@dataclass
class ResharderTransport(ActorTransport):
    """The transport of a resharder, whose process may be killed at each request."""

    kills: Kills = field(default_factory=lambda: Kills(Random(0)))
    dead: bool = False

    def send_once(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """See `ActorTransport.send_once`."""
        if self.dead:
            raise Killed
        if operation in _READS and TOPOLOGY in request.get("RequestItems", {TOPOLOGY: ()}):
            self.actor.topology_read_at = self.database.scheduler.now
        try:
            self.kills.strike()
            return super().send_once(operation, request)
        except Killed:
            self.dead = True
            raise


def scope_of(model: type[Any], *, partition: str | None = None, index: str | None = None) -> Scope:
    """Return the scope of a resize of an entity."""
    entity = definition(model)
    return Scope(entity, partition, entity.indexes[index] if index else None)
