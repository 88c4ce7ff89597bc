"""Those who change the count: a controller, movers that are killed and come back, and an operator who interferes."""

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
from dynashard.topology import Phase, Record, TopologyTable
from dynashard.transport.interface import Wire
from tests.resharding.database import ActorTransport, Database
from tests.resharding.scheduler import Actor, AnomalyError, Killed, Scheduler
from tests.resharding.traffic import LEASE, OPERATION, SKEW
from tests.resharding.wire import TABLE, TOPOLOGY

T = TypeVar("T")
# A transaction may show in halves for as long as its sender is allowed: what waits for it waits longer.
TIMING: Final = Timing(lease=LEASE, operation=OPERATION, skew=SKEW, lag=OPERATION + SKEW)
SURVEYS: Final = 0.1
"""How often items are counted beforehand: it changes nothing, and takes turns."""
_TURNS: Final = 60
"""How many turns one waits for another at most."""
_EARLY: Final = 0.5
LATER: Final = (5, 6, 6, 6, 7, 7, 8, 8, 9, 10, 10, 11, 12)
"""Stages at which late requests are executed: from the first pass of the mover on."""
_LOOKS: Final = frozenset({"BatchGetItem", "GetItem"})


@dataclass
class Kills:
    """How often a process is killed, and how often at most."""

    random: Random
    rate: float = 0.0
    left: int = 4
    struck: int = 0

    def strike(self) -> None:
        """Perhaps kill who asks.

        Raises:
            Killed: it is.
        """
        if self.rate and self.left and self.random.random() < self.rate:
            self.left -= 1
            self.struck += 1
            raise Killed


@dataclass
class Change:
    """A change of a count, driven by several actors.

    Attributes:
        scope: what it concerns.
        database: the engine.
        model: the entity.
        to: the count it leads to.
        kills: how often its processes are killed.
        begun: whether it was asked for before the clients came.
        tasks: those that were open when the controller last looked; movers may work on old news.
        due: when the controller looks again.
        stage: how many phases and times of work it has come to.
        early: how many clients want to look at the topology before the next publication.
        late: how many operations others have done.
        over: whether the controller has seen it done.
        refused: reasons of refusals met.
    """

    database: Database
    model: type[Any]
    scope: Scope
    to: int
    kills: Kills
    begun: bool
    tasks: tuple[int, ...] = ()
    over: bool = False
    refused: list[str] = field(default_factory=list)
    due: float = 0.0
    stage: int = 0
    early: int = 0
    late: int = 0
    _label: Any = None
    ids: Any = field(default_factory=lambda: count(1))

    @property
    def scheduler(self) -> Scheduler:
        """Who gives out the turns."""
        return self.database.scheduler

    def resharder(self, actor: Actor) -> Resharder:
        """A process that works on changes, fresh from its start."""
        transport = ResharderTransport(self.database, actor, kills=self.kills)
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

    def lead(self, actor: Actor, *, stages: int) -> None:
        """Ask for the change, and bring it through some of its waits and times of work, with nobody else there."""
        self._persist(actor, lambda resharder: resharder.start(self.scope, self.to, survey=False))
        while self.stage < stages and not self.over:
            step = self._attempt(actor, self._advance) or {}
            self._enter(step)
            for task in step.get("tasks", ()):
                while not self._attempt(actor, partial(self._work, task)):
                    self.scheduler.idle(actor, 1.0)
            self.over = step.get("kind") == "done"
            self.scheduler.idle(actor, float(step.get("seconds", 1.0)))

    def control(self, actor: Actor) -> None:
        """The controller: starts the change, and publishes phase after phase."""
        if not self.begun:
            survey = actor.random.random() < SURVEYS
            self._persist(actor, lambda resharder: resharder.start(self.scope, self.to, survey=survey))
        self._dally(actor)
        self._await_early(actor)
        while not self.over:
            step: dict[str, Any] = self._attempt(actor, self._advance) or {}
            self.scheduler.note(actor, f"=== step {step}")
            self.tasks = tuple(step.get("tasks") or ())
            self._enter(step)
            if not step:
                pause = 1.0
            elif step["kind"] == "done":
                self.over = self.at_rest()
                pause = 5.0
            else:
                pause = max(1.0, float(step["seconds"]))
            self.due = self.scheduler.now + pause
            self.scheduler.idle(actor, 0.0 if self.over else pause)
            self._dally(actor)
            self._await_movers(actor)
            self._await_early(actor)

    def _enter(self, step: Mapping[str, Any]) -> None:
        """Count the stages of the change: its phases, and times of work."""
        record = self._record()
        label = record and (record.phase, record.target, step.get("kind") == "work")
        self.stage += label != self._label
        self._label = label

    def _dally(self, actor: Actor) -> None:
        """Let some turns pass, but no time: so that phases are published in the midst of what clients do."""
        for _ in range(actor.random.choice((0, 0, 2, 5, 10, 30))):
            self.scheduler.pause(actor)

    def _await_early(self, actor: Actor) -> None:
        """Publish nothing before those have looked at the topology who want to act on what they saw afterwards."""
        for _ in range(_TURNS):
            if not self.early:
                return
            self.scheduler.pause(actor)

    def among(self, actor: Actor, operations: int) -> Iterator[bool]:
        """Turns for some operations, so that they lie around a publication.

        Those who are early look at the topology before it, and act on what they saw after others have acted on what
        is true since. Yields whether this is one of them.
        """
        early = actor.random.random() < _EARLY
        for number in range(operations):
            if number == early:
                self._await(actor, self._published)
                if early:
                    self._await(actor, actor.random.choice((self._acted, self._acted, self._published)))
            self.early += early and number == 0
            yield early
            self.early -= early and number == 0
            self.late += not early

    def _published(self) -> int:
        return self.stage

    def _acted(self) -> int:
        return self.late

    def _await(self, actor: Actor, what: Callable[[], int]) -> None:
        """Give turns away until something has changed, at most so many, or none at all."""
        before = what()
        for _ in range(actor.random.choice((0, _TURNS, _TURNS))):
            if what() != before or self.over:
                return
            self.scheduler.pause(actor)

    def _await_movers(self, actor: Actor) -> None:
        """Look again when the movers believe that they are done, or after a long time."""
        for _ in range(actor.random.choice((0, 100))):
            if not self.tasks:
                return
            self.due = self.scheduler.now + 1.0
            self.scheduler.idle(actor, 1.0)

    def rest(self, actor: Actor) -> bool:
        """Wait for a while, mostly until a later phase is about to be published: then it is that something happens."""
        stage = self.stage + actor.random.choice((0, 0, 1, 1, 2))
        while self.stage < stage and not self.over:
            self.scheduler.idle(actor, max(0.5, self.due - self.scheduler.now))
        pause = actor.random.choice((0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 15.0, 35.0))
        if actor.random.random() < 0.8:
            pause += max(0.0, self.due - self.scheduler.now)
        self.scheduler.idle(actor, pause)
        self._dally(actor)
        return not self.over or actor.random.random() < 0.5

    def delay(self, actor: Actor) -> None:
        """Wait until the change has come to a later stage, up to its end, and for some turns more."""
        stage = actor.random.choice([each for each in LATER if each > self.stage] or [self.stage])
        for _ in range(_TURNS):
            if self.stage >= stage or self.over:
                break
            self.scheduler.idle(actor, max(0.5, self.due - self.scheduler.now))
        self._dally(actor)

    def at_rest(self) -> bool:
        """Whether the change has ended, by the records themselves."""
        record, family = self._record(), self._record(family=True)
        if record is None or family is None or family.active:
            return record is None
        return record.phase is Phase.STABLE and record.target is None and record.swept

    def _record(self, *, family: bool = False) -> Record | None:
        return TopologyTable(self.database.wire, TOPOLOGY).find(self.scope.family if family else self.scope.key)

    def _advance(self, resharder: Resharder) -> dict[str, Any]:
        return resharder.advance(self.scope.key).as_dict()

    def _work(self, task: int, resharder: Resharder) -> bool:
        return resharder.work(self.scope.key, task, seconds=5.0)

    def move(self, actor: Actor) -> None:
        """A mover: works on tasks until the change is over."""
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
        """An operator: pauses and resumes, or aborts."""
        self.scheduler.idle(actor, actor.random.choice((1.0, 40.0, 70.0, 130.0, 190.0, 250.0)))
        if self.over:
            return
        if actor.random.random() < 0.5:
            self._persist(actor, lambda resharder: resharder.abort(self.scope))
            return
        self._persist(actor, lambda resharder: resharder.pause(self.scope))
        self.scheduler.idle(actor, actor.random.choice((1.0, 30.0, 100.0)))
        self._persist(actor, lambda resharder: resharder.resume(self.scope))

    def _persist(self, actor: Actor, do: Callable[[Resharder], object]) -> None:
        for _ in range(100):
            try:
                if self._attempt(actor, do) is not None:
                    return
            except ReshardRefusedError as error:
                self.refused.append(error.reason)
                return
            self.scheduler.idle(actor, 1.0)
        raise AnomalyError("the controller gets nowhere")

    def _attempt(self, actor: Actor, do: Callable[[Resharder], T]) -> T | None:
        """Do something in a fresh process; None if that was killed, or met what may be gone the next time."""
        actor.looked = self.scheduler.now
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
            actor.looked = None
        return None


@dataclass
class ResharderTransport(ActorTransport):
    """The transport of a process that works on changes: it may be killed at each request."""

    kills: Kills = field(default_factory=lambda: Kills(Random(0)))
    dead: bool = False

    def send_once(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """See `ActorTransport.send_once`."""
        if self.dead:
            raise Killed
        if operation in _LOOKS and TOPOLOGY in request.get("RequestItems", {TOPOLOGY: ()}):
            self.actor.looked = self.database.scheduler.now
        try:
            self.kills.strike()
            return super().send_once(operation, request)
        except Killed:
            self.dead = True
            raise


def scope_of(model: type[Any], *, partition: str | None = None, index: str | None = None) -> Scope:
    """What a change of an entity concerns."""
    entity = definition(model)
    return Scope(entity, partition, entity.indexes[index] if index else None)
