"""Those who change the count: a controller, movers that are killed and come back, and an operator who interferes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final, TypeVar

from dynashard import definition
from dynashard.errors import DynashardError, ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.topology import Phase, TopologyTable
from tests.resharding.clients import LEASE, OPERATION, SKEW
from tests.resharding.database import ActorTransport, Database
from tests.resharding.scheduler import Actor, AnomalyError, Killed, Scheduler
from tests.resharding.wire import TABLE, TOPOLOGY

T = TypeVar("T")
TIMING: Final = Timing(lease=LEASE, operation=OPERATION, skew=SKEW)
SURVEYS: Final = 0.1
"""How often items are counted beforehand: it changes nothing, and takes turns."""
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
        begun: whether it was asked for before the schedule began.
        tasks: those that were open when the controller last looked; movers may work on old news.
        due: when the controller looks again.
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
            clock=self.scheduler.clock,
            sleep=lambda seconds: self.scheduler.sleep(actor, seconds),
            random=actor.random.random,
            new_id=lambda: f"change{next(self.ids)}",
        )

    def begin(self, random: Random) -> None:
        """Ask for the change, without anybody in between, and let the first wait pass."""
        resharder = Resharder(
            self.database.wire,
            table=TABLE,
            topology_table=TOPOLOGY,
            entities=[self.model],
            timing=TIMING,
            clock=self.scheduler.clock,
            new_id=lambda: f"change{next(self.ids)}",
        )
        resharder.start(self.scope, self.to, survey=random.random() < SURVEYS)

    def control(self, actor: Actor) -> None:
        """The controller: starts the change, and publishes phase after phase."""
        if not self.begun:
            survey = actor.random.random() < SURVEYS
            self._persist(actor, lambda resharder: resharder.start(self.scope, self.to, survey=survey))
        while not self.over:
            step: dict[str, Any] = self._attempt(actor, self._advance) or {}
            self.scheduler.note(actor, f"=== step {step}")
            self.tasks = tuple(step.get("tasks") or ())
            if not step:
                pause = 1.0
            elif step["kind"] == "done":
                self.over = self.at_rest()
                pause = 5.0
            else:
                pause = max(1.0, float(step["seconds"]))
            self.due = self.scheduler.now + pause
            self.scheduler.idle(actor, 0.0 if self.over else pause)
            self._await_movers(actor)

    def _await_movers(self, actor: Actor) -> None:
        """Look again when the movers believe that they are done, or after a long time."""
        for _ in range(actor.random.choice((0, 100))):
            if not self.tasks:
                return
            self.due = self.scheduler.now + 1.0
            self.scheduler.idle(actor, 1.0)

    def rest(self, actor: Actor) -> bool:
        """Wait for a while, mostly until the controller looks again: then it is that something happens."""
        pause = actor.random.choice((0.0, 0.0, 1.0, 15.0, 35.0))
        if actor.random.random() < 0.7:
            pause += max(0.0, self.due - self.scheduler.now)
        self.scheduler.idle(actor, pause)
        return not self.over or actor.random.random() < 0.5

    def at_rest(self) -> bool:
        """Whether the change has ended, by the records themselves."""
        table = TopologyTable(self.database.wire, TOPOLOGY)
        records = table.read([self.scope.key, self.scope.family])
        record = records.get(self.scope.key)
        if record is None or records[self.scope.family].active:
            return record is None
        return record.phase is Phase.STABLE and record.target is None and record.swept

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
            if isinstance(error, ReshardRefusedError) or not error.retryable:
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

    def call(self, operation: str, request: Any) -> Any:
        """See `Transport.call`."""
        if self.dead:
            raise Killed
        if operation in _LOOKS and TOPOLOGY in request.get("RequestItems", {TOPOLOGY: ()}):
            self.actor.looked = self.database.scheduler.now
        try:
            self.kills.strike()
            return super().call(operation, request)
        except Killed:
            self.dead = True
            raise


def scope_of(model: type[Any], *, partition: str | None = None, index: str | None = None) -> Scope:
    """What a change of an entity concerns."""
    entity = definition(model)
    return Scope(entity, partition, entity.indexes[index] if index else None)
