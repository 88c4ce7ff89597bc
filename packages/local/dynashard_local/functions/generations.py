"""Which execution environments a function has: those of its current code, and older ones that still serve."""

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dynashard_local import stopping
from dynashard_local.errors import LocalStackError
from dynashard_local.functions.environment import Environment, FunctionSpec, Lifeline

ENDING: Final = "the local stack is ending"
"""Why a function fails once its environments are given up."""


class FunctionError(Exception):
    """The function failed, or took too long; its log says how."""


class HandlerError(LocalStackError):
    """A handler cannot be imported; `problem` is its error in one line, and the log has the traceback."""

    def __init__(self, handler: str, problem: str, log: Path) -> None:
        super().__init__(f"{handler} cannot be started ({problem}): see {log}.")
        self.problem = problem


@dataclass(slots=True, eq=False)
class Generation:
    """LocalFunction that were started with the same code.

    Attributes:
        idle: those that wait for an event; the last one was used most recently.
        busy: how many serve an event or are being started.
    """

    life: Lifeline = field(default_factory=Lifeline)
    idle: list[Environment] = field(default_factory=list)
    busy: int = 0


class Generations:
    """The environments of one function, by the code with which they were started.

    After a change of the code, `prepare` and `replace` start new environments and end the old ones after they answer.
    A call whose new environment cannot import changed code gets an older one instead.

    Attributes:
        changed: guards everything here, and whatever must change together with it.
        ended: whether the environments are given up.
    """

    def __init__(self, spec: FunctionSpec, log: Path) -> None:
        self.changed = threading.Condition()
        self.ended = False
        self._spec = spec
        self._log = log
        self._current = Generation()
        self._all = [self._current]
        self._retiring: list[threading.Thread] = []

    @property
    def handler(self) -> str:
        """What runs, such as `functions.api.handler:handler`."""
        return self._spec.handler

    @property
    def in_use(self) -> bool:
        """Whether there are environments."""
        with self.changed:
            return bool(self._current.idle or self._current.busy)

    def warm(self) -> None:
        """Start the first environment and import the handler.

        Raises:
            HandlerError: the handler cannot be imported.
        """
        # A signal between the two statements would leave a process that nothing ends.
        with stopping.deferred():
            environment = Environment(self._spec, self._log, self._current.life)
            self._current.idle.append(environment)
        if problem := environment.problem():
            self._current.idle.remove(environment)
            environment.end()
            raise HandlerError(self._spec.handler, problem, self._log)

    def prepare(self) -> Generation:
        """Start an environment with the current code while the others serve. Pass the result to `replace` or `discard`.

        Raises:
            HandlerError: the process cannot be started, or the handler not be imported; nothing has changed.
        """
        generation = Generation()
        with self.changed:
            if self.ended:
                raise HandlerError(self._spec.handler, ENDING, self._log)
            # `abandon` ends it with all others.
            self._all.append(generation)
        try:
            environment = Environment(self._spec, self._log, generation.life)
        except OSError as error:
            self.discard(generation)
            raise HandlerError(self._spec.handler, str(error), self._log) from error
        generation.idle.append(environment)
        if problem := environment.problem():
            self.discard(generation)
            raise HandlerError(self._spec.handler, problem, self._log)
        return generation

    def replace(self, prepared: Generation) -> None:
        """Serve by what was prepared; the others end when they have answered. Returns at once."""
        with self.changed:
            old, self._current = self._current, prepared
            # Calls may wait for an environment.
            self.changed.notify_all()
        thread = threading.Thread(target=self._retire, args=[old], name=f"{self._spec.name}-retire", daemon=True)
        self._retiring = [each for each in self._retiring if each.is_alive()] + [thread]
        thread.start()

    def discard(self, prepared: Generation) -> None:
        """End what was prepared."""
        with self.changed:
            # `abandon` may end it from another thread.
            prepared.life.end()
        for environment in prepared.idle:
            environment.end()
        with self.changed:
            self._all.remove(prepared)

    def _retire(self, old: Generation) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.ended or not old.busy)
            if self.ended:
                return
        self.discard(old)

    def take(self) -> tuple[Generation, Environment, bool]:
        """Return an idle environment or a new one, and whether it was idle. Waits for the start of a new one.

        Raises:
            FunctionError: the stack is ending, or no process can be started or its code not be imported, and no other
                environment is left.
        """
        with self.changed:
            if self.ended:
                raise FunctionError(ENDING)
            if taken := self.take_idle():
                return *taken, True
            generation = self._current
            generation.busy += 1
        try:
            environment = Environment(self._spec, self._log, generation.life)
        except OSError as error:
            # The system has no process or descriptor left, until another environment has answered.
            self.take_back(generation)
            return self._waited_for(str(error))
        problem = environment.problem()
        if not problem:
            return generation, environment, False
        environment.end()
        self.take_back(generation)
        return self._waited_for(problem)

    def _waited_for(self, problem: str) -> tuple[Generation, Environment, bool]:
        """Wait for an environment with older code."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or self._current.idle or not self._current.busy)
            if self.ended:
                raise FunctionError(ENDING)
            if taken := self.take_idle():
                return *taken, True
            raise FunctionError(f"the function cannot be started: {problem}")

    def take_idle(self) -> tuple[Generation, Environment] | None:
        """Return the idle environment that was used most recently; None if there is none. The lock is held."""
        if not self._current.idle:
            return None
        self._current.busy += 1
        return self._current, self._current.idle.pop()

    def take_back(self, generation: Generation, environment: Environment | None = None) -> None:
        """Take an environment back that has answered; None if it has ended."""
        with self.changed:
            generation.busy -= 1
            if environment is not None:
                generation.idle.append(environment)
            self.changed.notify_all()

    def abandon(self) -> None:
        """End the processes of all environments, without waiting; may be called from any thread."""
        with self.changed:
            self.ended = True
            for generation in self._all:
                generation.life.end()
            self.changed.notify_all()

    def close(self) -> None:
        """After `abandon`, wait for the end of those that are idle or were being replaced."""
        for thread in self._retiring:
            thread.join()
        for generation in self._all:
            for environment in generation.idle:
                environment.end()
            generation.idle.clear()
