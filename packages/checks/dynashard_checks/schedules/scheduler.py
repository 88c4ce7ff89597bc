"""Deterministic simulation: actors take turns, exactly one runs at a time, and a seeded random source draws the next.

An actor is a function in a thread of its own. It ends its turn before each request to the database, so every order of
requests is possible. Between two requests no other actor runs. The clock only moves when a sleeping actor is woken or
a random delay is drawn, and never further than a running operation allows: a request is applied at most
`operation` seconds after its sender has last read the topology, as everywhere in the protocol.
"""

from collections.abc import Callable, Sequence
from math import inf
from random import Random
from threading import Lock, Thread
from typing import Final

MOST_STEPS: Final = 6000
START: Final = 1_900_000_000.0
"""The time at which schedules begin, in epoch seconds."""


class Killed(BaseException):
    """The process of an actor was killed. This is not an `Exception`, so the code under test cannot catch it."""


class AnomalyError(AssertionError):
    """The code under test broke a promise."""


class Actor:
    """A simulated process that takes turns with others.

    Attributes:
        name: its name in the trace.
        topology_read_at: when it last read the topology, in epoch seconds; None while it runs no operation.
        wake: the time until which it sleeps, in epoch seconds.
        doomed: whether it ends at its next request.
    """

    def __init__(self, name: str, random: Random, weight: float) -> None:
        self.name = name
        self.random = random
        self.weight = weight
        self.topology_read_at: float | None = None
        self.wake = -inf
        self.doomed = False
        self.gate = Lock()
        self.gate.acquire()


class Scheduler:
    """Gives the turns of one schedule to its actors.

    Args:
        random: draws the next actor.
        operation: the longest time in seconds between an actor's read of the topology and a request that relies on it.
        ticked: called after the clock has moved.
        hops: by how many seconds the clock sometimes moves although somebody could act before.
        late: by how many seconds an actor wakes too late at most because others wake before.
    """

    def __init__(
        self,
        random: Random,
        *,
        operation: float,
        ticked: Callable[[], None],
        hops: Sequence[float] = (1.0, 10.0, 30.0),
        late: float = inf,
    ) -> None:
        self.now = START
        self.trace: list[str] | None = None
        self.steps = 0
        self.failure: BaseException | None = None
        self._random = random
        self._operation = operation
        self._ticked = ticked
        self._hops = hops
        self._late = late
        self._actors: list[Actor] = []
        self._sticky = random.choice((0.0, 0.3, 0.6, 0.9))
        self._hasty = random.choice((0.0, 0.0, 0.01, 0.05, 0.2))
        self._restless = random.choice((0.0, 0.01, 0.05, 0.3))
        self._over = Lock()
        self._over.acquire()

    def clock(self) -> float:
        """Return the time of all actors, in epoch seconds."""
        return self.now

    def spawn(self, name: str, body: Callable[[Actor], None]) -> Actor:
        """Add an actor. It starts in its first turn."""
        weight = 2.0 ** -self._random.randrange(4)
        actor = Actor(name, Random(self._random.getrandbits(32)), weight)
        self._actors.append(actor)
        Thread(target=self._run_actor, args=(actor, body), name=name, daemon=True).start()
        return actor

    def run(self) -> None:
        """Let all actors take turns until they have ended. Raises the first failure."""
        if self._actors:
            self._choose(None).gate.release()
            self._over.acquire()
        if self.failure is not None:
            raise self.failure

    def pause(self, actor: Actor) -> None:
        """End the turn of an actor. Returns when its next turn begins.

        Raises:
            Killed: the actor was killed in between.
        """
        self._hand_over(actor)
        if actor.doomed:
            raise Killed

    def pause_inside(self, actor: Actor) -> None:
        """As `pause`, within a request that the engine completes although its sender was killed."""
        self._hand_over(actor)
        if self.failure is not None:
            raise Killed

    def sleep(self, actor: Actor, seconds: float) -> None:
        """End the turn of an actor for some seconds."""
        actor.wake = self.now + max(0.0, seconds)
        if actor.topology_read_at is not None and actor.wake > actor.topology_read_at + self._operation:
            # An operation ends with the invocation that runs it.
            actor.wake = -inf
            raise Killed
        self.pause(actor)

    def idle(self, actor: Actor, seconds: float) -> None:
        """Sleep outside any operation."""
        actor.topology_read_at = None
        self.sleep(actor, seconds)

    def note(self, actor: Actor | None, text: str | Callable[[], str]) -> None:
        """Add a line to the trace, if there is one. A text that costs time to write is only made then."""
        if self.trace is not None:
            line = text if isinstance(text, str) else text()
            self.trace.append(f"{self.now - START:8.2f}  {actor.name if actor else '':<12}{line}")

    def fail(self, failure: BaseException) -> None:
        """End the schedule. Only the first failure is kept."""
        if self.failure is None:
            self.failure = failure
        for actor in self._actors:
            actor.doomed = True

    def _hand_over(self, actor: Actor) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            self.fail(AnomalyError("the schedule does not end"))
        chosen = self._choose(actor)
        if chosen is not actor:
            chosen.gate.release()
            actor.gate.acquire()
        actor.wake = -inf

    def _run_actor(self, actor: Actor, body: Callable[[Actor], None]) -> None:
        actor.gate.acquire()
        try:
            if not actor.doomed:
                body(actor)
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - `run` raises it again
            self.fail(error)
        self._actors.remove(actor)
        if self._actors:
            self._choose(None).gate.release()
        else:
            self._over.release()

    def _choose(self, current: Actor | None) -> Actor:
        if self.failure is not None:
            return self._actors[0] if current is None else current
        random = self._random
        if current is not None and current.wake <= self.now and random.random() < self._sticky:
            return current
        horizon = min(
            [a.topology_read_at + self._operation for a in self._actors if a.topology_read_at is not None], default=inf
        )
        ready = [actor for actor in self._actors if actor.wake <= self.now]
        if not ready or random.random() < self._restless:
            latest = min(horizon, max(self.now, min(actor.wake for actor in self._actors)) + self._late)
            ready = [actor for actor in self._actors if actor.wake <= max(self.now, latest)]
        if len(ready) > 1:
            [chosen] = random.choices(ready, [actor.weight for actor in ready])
        else:
            chosen = ready[0]
        self._advance_clock(chosen.wake, horizon)
        return chosen

    def _advance_clock(self, wake: float, horizon: float) -> None:
        now = max(self.now, wake)
        if self._hasty and self._random.random() < self._hasty:
            now = max(now, min(horizon, now + self._random.choice(self._hops)))
        if now > self.now:
            self.now = now
            self._ticked()
