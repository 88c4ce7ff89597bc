"""Virtual time: actors take turns, exactly one runs at a time, and the clock jumps to the next one that wakes.

The layer is synchronous, so an actor is a thread; a switch between two of them takes some 20 microseconds. An actor
that sleeps while no other wakes before it keeps its turn, and costs nothing. The same actors give the same order of
events.
"""

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from math import inf
from threading import Lock, Thread
from typing import Final

EPOCH: Final = 1_900_000_000.0
"""Where virtual time begins, in epoch seconds."""
_NO_TURN: Final = "an actor may only sleep in its own turn"

Body = Callable[[], None]


class StoppedError(BaseException):
    """The run has ended. Not an `Exception`, so that the code that sleeps does not catch it."""


class _Actor:
    """A thread that runs one body after the other. `gate` is released to give it the turn."""

    __slots__ = ("body", "children", "context", "gate", "parent", "relief")

    def __init__(self) -> None:
        self.gate = Lock()
        self.gate.acquire()
        self.body: Body | None = None
        self.context: Context | None = None
        self.parent: _Actor | None = None
        self.children = 0
        self.relief: Body | None = None


class Actors:
    """Runs actors in virtual time.

    Attributes:
        now: the time, in epoch seconds.
    """

    def __init__(self) -> None:
        self.now = EPOCH
        self._waiting: list[tuple[float, int, _Actor]] = []
        self._numbers = count()
        self._idle: list[_Actor] = []
        self._current: _Actor | None = None
        self._over = Lock()
        self._over.acquire()
        self._until = inf
        self._stopping = False
        self._failure: BaseException | None = None
        self._outer = copy_context()

    def clock(self) -> float:
        """Return the time, in epoch seconds."""
        return self.now

    @property
    def seconds(self) -> float:
        """The time since the start, in seconds."""
        return self.now - EPOCH

    def spawn(self, body: Body, *, after: float = 0.0) -> None:
        """Add an actor that begins after so many seconds, in a copy of the context of `keep_context`."""
        self._start(body, None, after, self._outer)

    def keep_context(self) -> None:
        """Let actors begin in the context variables that the caller has now."""
        self._outer = copy_context()

    def run(self, seconds: float = inf) -> None:
        """Let actors take turns until all have ended, or until a time since the start; then the others are stopped.

        Raises the first error of an actor.
        """
        self._until = EPOCH + seconds
        self._stopping = False
        self._pass_on()
        self._over.acquire()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the run after the turn of the running actor."""
        self._until = self.now
        self._stopping = True

    def sleep(self, seconds: float) -> None:
        """End the turn of the running actor for some seconds."""
        self._relieve()
        wake = self.now + max(0.0, seconds)
        if self._stopping or wake > self._until or (self._waiting and self._waiting[0][0] <= wake):
            self._suspend(wake)
        else:
            self.now = wake

    def with_relief(self, relief: Body, work: Body) -> bool:
        """Do some work; another actor takes over with `relief` as soon as the work sleeps.

        So one actor can do the work of many that seldom wait. Returns whether nobody took over.
        """
        actor = self._running()
        actor.relief = relief
        try:
            work()
        finally:
            alone, actor.relief = actor.relief is not None, None
        return alone

    def gather(self, bodies: Sequence[Body]) -> None:
        """Run bodies as actors of their own, and return when all have ended."""
        self._relieve()
        actor = self._running()
        for body in bodies:
            self._start(body, actor, 0.0)
        actor.children = len(bodies)
        if bodies:
            self._wait(actor)

    def _relieve(self) -> None:
        actor = self._running()
        relief, actor.relief = actor.relief, None
        if relief is not None:
            # Its context is that of the first actor: nothing of the work that sleeps belongs to it.
            self._start(relief, None, 0.0, self._outer)

    def _running(self) -> _Actor:
        if self._current is None:
            raise RuntimeError(_NO_TURN)
        return self._current

    def _suspend(self, wake: float) -> None:
        actor = self._running()
        heappush(self._waiting, (wake, next(self._numbers), actor))
        self._wait(actor)

    def _wait(self, actor: _Actor) -> None:
        """Give the turn away, and return when it is the actor's again."""
        self._pass_on()
        actor.gate.acquire()
        self._current = actor
        if self._stopping:
            raise StoppedError

    def _start(self, body: Body, parent: _Actor | None, after: float, context: Context | None = None) -> None:
        if self._idle:
            actor = self._idle.pop()
        else:
            actor = _Actor()
            Thread(target=self._live, args=(actor,), name="actor", daemon=True).start()
        actor.body, actor.parent = body, parent
        actor.context = copy_context() if context is None else context.copy()
        heappush(self._waiting, (self.now + after, next(self._numbers), actor))

    def _live(self, actor: _Actor) -> None:
        """The life of a thread: run a body in each turn that begins one."""
        while True:
            actor.gate.acquire()
            self._current = actor
            body, context = actor.body, actor.context
            if body is None or context is None:
                return
            if not self._stopping:
                self._run_body(context, body)
            actor.body = actor.context = None
            self._idle.append(actor)
            parent, actor.parent = actor.parent, None
            if parent is not None:
                parent.children -= 1
                if not parent.children:
                    heappush(self._waiting, (self.now, next(self._numbers), parent))
            self._pass_on()

    def _run_body(self, context: Context, body: Body) -> None:
        try:
            context.run(body)
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._failure = self._failure or error
            self._stopping = True

    def _pass_on(self) -> None:
        """Give the turn to the next actor; end the run if there is none, or none before its end."""
        self._current = None
        if not self._stopping and self._waiting and self._waiting[0][0] > self._until:
            self._stopping = True
            self.now = self._until
        if not self._waiting:
            self._finish()
            return
        wake, _, actor = heappop(self._waiting)
        if not self._stopping:
            self.now = max(self.now, wake)
        actor.gate.release()

    def _finish(self) -> None:
        """End the run, and the threads, which are idle now."""
        for actor in self._idle:
            actor.body = None
            actor.gate.release()
        self._idle.clear()
        self._over.release()
