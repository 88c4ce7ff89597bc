"""The transport of one actor, which sends requests to the simulated database, and again by the rules of the layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.runtime import Runtime
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.attempts import Attempts, resend_of
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.interface import Call, Resend, Wire, consumed_of, meters
from dynashard_checks.schedules.database import Database
from dynashard_checks.schedules.history import Check
from dynashard_checks.schedules.processes import Process
from dynashard_checks.schedules.scheduler import Actor

_ATTEMPTS: Final = (1, 2, 3)
"""How often a request is sent at most. Few attempts suffice, because the first resend is the interesting one."""


@dataclass
class ActorTransport(OneByOne):
    """The `Transport` of one actor. Parallel requests are sent one after the other in a random order.

    Attributes:
        check: judges the effect of the running operation on a key; None for actors that change no value.
    """

    database: Database
    actor: Actor
    process: Process
    check: Check | None = None
    calls: int = 0
    allowed: Callable[[str], None] = lambda _: None

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """See `Transport.call`."""
        attempts = Attempts(
            most=self.actor.random.choice(_ATTEMPTS),
            runtime=Runtime(sleep=self._sleep, random=self.actor.random.random),
        )
        answer = attempts.run(
            lambda _: self.send_once(operation, request), operation, resend or resend_of(operation, request)
        )
        for meter in meters():
            meter.record(operation, consumed_of(operation, answer))
        return answer

    def send_once(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """Send one attempt of a request."""
        self.calls += 1
        self.allowed(operation)
        sent = self.process.clock()
        answer = self.database.call(self.actor, operation, request, self.check)
        self.process.observe(sent)
        return answer

    @property
    def clock_offset(self) -> ClockOffset:
        """What the process knows about its clock; see `Clocked`."""
        return self.process.offset

    def _sleep(self, seconds: float) -> None:
        self.database.scheduler.sleep(self.actor, seconds)

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """See `Transport.try_all`."""
        del concurrency
        order = list(range(len(calls)))
        self.actor.random.shuffle(order)
        answers = {at: self._tried(calls[at]) for at in order}
        return [answers[at] for at in range(len(calls))]

    def close(self) -> None:
        """Do nothing: the connection belongs to the database."""
