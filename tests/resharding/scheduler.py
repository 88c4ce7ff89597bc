"""Actors that take turns: exactly one runs at a time, and chance says who is next.

An actor is a body in a thread of its own. Before each request to the database it gives the turn away, so that every
order of requests can come about; between two requests nothing else happens. The clock stands still unless an actor
sleeps and chance wakes it, and it never passes what a running operation allows: a request is applied at most
`operation` seconds after its sender has last looked at the topology, as everywhere in the protocol.
"""

from collections.abc import Callable
from math import inf
from random import Random
from threading import Lock, Thread
from typing import Final

MOST_STEPS: Final = 6000
_EPOCH: Final = 1_900_000_000.0


class Killed(BaseException):
    """The process of an actor is gone. Not an `Exception`: nothing in the code under test may survive it."""


class AnomalyError(AssertionError):
    """What must never happen has happened."""


class Actor:
    """One who takes turns.

    Attributes:
        name: for the trace.
        looked: when it has last looked at the topology, in epoch seconds; None while it runs no operation.
        wake: it sleeps until then.
        doomed: it ends at its next request.
    """

    def __init__(self, name: str, random: Random, weight: float) -> None:
        self.name = name
        self.random = random
        self.weight = weight
        self.looked: float | None = None
        self.wake = -inf
        self.doomed = False
        self.gate = Lock()
        self.gate.acquire()


class Scheduler:
    """Gives out the turns of one schedule.

    Args:
        random: draws who is next.
        operation: the longest time between an actor's look at the topology and what it sends thereafter.
        ticked: called after the clock has moved.
    """

    def __init__(self, random: Random, *, operation: float, ticked: Callable[[], None]) -> None:
        self.now = _EPOCH
        self.trace: list[str] | None = None
        self.steps = 0
        self.failure: BaseException | None = None
        self._random = random
        self._operation = operation
        self._ticked = ticked
        self._actors: list[Actor] = []
        self._sticky = random.choice((0.0, 0.3, 0.6, 0.9))
        self._hasty = random.choice((0.0, 0.0, 0.01, 0.05, 0.2))
        self._restless = random.choice((0.0, 0.01, 0.05, 0.3))
        self._over = Lock()
        self._over.acquire()

    def clock(self) -> float:
        """The wall clock of all actors, in epoch seconds."""
        return self.now

    def spawn(self, name: str, body: Callable[[Actor], None]) -> Actor:
        """Add an actor. It begins when it is first given the turn."""
        weight = 2.0 ** -self._random.randrange(4)
        actor = Actor(name, Random(self._random.getrandbits(32)), weight)
        self._actors.append(actor)
        Thread(target=self._live, args=(actor, body), name=name, daemon=True).start()
        return actor

    def run(self) -> None:
        """Let all actors take turns until they have ended; raises what went wrong first."""
        if self._actors:
            self._choose(None).gate.release()
            self._over.acquire()
        if self.failure is not None:
            raise self.failure

    def pause(self, actor: Actor) -> None:
        """Give the turn away; comes back when it is this actor's again.

        Raises:
            Killed: the actor has ended meanwhile.
        """
        self._hand_over(actor)
        if actor.doomed:
            raise Killed

    def pause_inside(self, actor: Actor) -> None:
        """As `pause`, inside of what goes on even though its sender is gone."""
        self._hand_over(actor)
        if self.failure is not None:
            raise Killed

    def sleep(self, actor: Actor, seconds: float) -> None:
        """Give the turn away for some time."""
        actor.wake = self.now + max(0.0, seconds)
        if actor.looked is not None and actor.wake > actor.looked + self._operation:
            # No operation outlives its invocation.
            actor.wake = -inf
            raise Killed
        self.pause(actor)

    def idle(self, actor: Actor, seconds: float) -> None:
        """Sleep outside any operation."""
        actor.looked = None
        self.sleep(actor, seconds)

    def note(self, actor: Actor | None, text: str) -> None:
        """Write a line of the trace, if one is kept."""
        if self.trace is not None:
            self.trace.append(f"{self.now - _EPOCH:8.2f}  {actor.name if actor else '':<12}{text}")

    def fail(self, failure: BaseException) -> None:
        """End the schedule: the first failure counts."""
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

    def _live(self, actor: Actor, body: Callable[[Actor], None]) -> None:
        actor.gate.acquire()
        try:
            if not actor.doomed:
                body(actor)
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the schedule was started
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
        horizon = min([a.looked + self._operation for a in self._actors if a.looked is not None], default=inf)
        ready = [actor for actor in self._actors if actor.wake <= self.now]
        if not ready or random.random() < self._restless:
            ready = [actor for actor in self._actors if actor.wake <= max(self.now, horizon)]
        if len(ready) > 1:
            [chosen] = random.choices(ready, [actor.weight for actor in ready])
        else:
            chosen = ready[0]
        self._pass(chosen.wake, horizon)
        return chosen

    def _pass(self, wake: float, horizon: float) -> None:
        now = max(self.now, wake)
        if self._hasty and self._random.random() < self._hasty:
            now = max(now, min(horizon, now + self._random.choice((1.0, 10.0, 30.0))))
        if now > self.now:
            self.now = now
            self._ticked()
