"""Requests that are executed at any later time, and answers that are held while others write.

Elsewhere a request is executed within the time that its sender was allowed, on which all waits of the protocol rest.
Here it may be executed at any time after it was sent: after its sender was told that the outcome is unknown, after it
was sent again, and when the change of the shard count is long over. An answer may also come so late that its sender's
view has ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.transport.classification import unanswered
from dynashard.transport.interface import Wire
from tests.resharding.database import WRITES, Database, Faults
from tests.resharding.history import Check
from tests.resharding.requests import summary
from tests.resharding.scheduler import Actor

_HELD: Final = (0, 0, 1, 3, 10, 30)
"""For how many turns an answer is held that never comes."""
_TROUBLE_GOES_ON: Final = 0.3
"""How often one of the requests after a lost one is throttled: a resend meets the same trouble."""
_STRAYING: Final = frozenset({"PutItem", "UpdateItem"})
"""Writes of one item, which go to its old home while the change has not come to MOVE."""
_LATER: Final = (0.0, 1.0, 10.0, 40.0, 70.0, 130.0, 190.0, 250.0, 310.0, 400.0)
"""After how many seconds a request is executed: up to several phases later."""


@dataclass
class LateFaults(Faults):
    """What happens to requests, and how often.

    Attributes:
        strays: only writes of one item by clients meet a fault, and are executed at a later stage of the change then,
            answered or not.
    """

    strays: bool = False
    _soon: int = 0

    def drawn(self, operation: str) -> str:
        """See `Faults.drawn`."""
        self._soon -= 1
        if self._soon >= 0 and self.rate and self.random.random() < _TROUBLE_GOES_ON:
            return "throttled"
        if not self.rate or not self.left or self.random.random() >= self.rate:
            return ""
        self.left -= 1
        if self.strays:
            return self.random.choice(("late", "late", "slow"))
        kinds = ["throttled", "lost"]
        if operation in WRITES:
            kinds += [
                "conflict",
                "lost",
                "answer_lost",
                "answer_lost",
                "answer_lost",
                "late",
                "late",
                "late",
                "slow",
                "slow",
            ]
        if operation.startswith("Batch"):
            kinds += ["unprocessed"]
        drawn = self.random.choice(kinds)
        if drawn in ("lost", "answer_lost", "late"):
            self._soon = 3
        return drawn


@dataclass
class LateDatabase(Database):
    """The engine, as schedules with late requests see it.

    Attributes:
        delay: lets a sender, or a late request, wait until a later stage of the change.
    """

    delay: Callable[[Actor], None] | None = None

    def _drawn(self, operation: str, check: Check | None) -> str:
        """See `Database._drawn`."""
        strays = isinstance(self.faults, LateFaults) and self.faults.strays
        if strays and (check is None or operation not in _STRAYING):
            return ""
        return super()._drawn(operation, check)

    def _strike(
        self, fault: str, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None
    ) -> Wire:
        if fault in ("throttled", "conflict", "unprocessed"):
            return super()._strike(fault, actor, operation, request, check)
        if fault == "slow":
            self._wait(actor)
            return self._send(actor, operation, request, check)
        if fault == "answer_lost":
            self._send(actor, operation, request, check)
        if fault == "late":
            self._execute_later(operation, request, check)
        for _ in range(self.faults.random.choice(_HELD)):
            self.scheduler.pause(actor)
        raise unanswered(operation, "ReadTimeoutError", f"The request was hit: {fault}")

    def _wait(self, actor: Actor) -> None:
        """The engine takes its time: also longer than the sender's view lasts."""
        actor.looked = None
        self._pass_time(actor)

    def _pass_time(self, actor: Actor) -> None:
        if self.delay is not None:
            self.delay(actor)
        else:
            self.scheduler.sleep(actor, self.faults.random.choice(_LATER))

    def _execute_later(self, operation: str, request: Mapping[str, Any], check: Check | None) -> None:
        def arrive(ghost: Actor) -> None:
            self._pass_time(ghost)
            self.scheduler.note(ghost, f"arrives: {operation} {summary(request)}")
            try:
                self._send(ghost, operation, request, check)
            except DynashardError as error:
                self.scheduler.note(ghost, f"-> {type(error).__name__}")

        self._late += 1
        self.scheduler.spawn(f"late{self._late}", arrive)
