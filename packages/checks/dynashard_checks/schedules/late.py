"""A simulated database that executes requests at any later time, and delays answers while others write.

In other schedules a request is executed within the time that its sender was allowed, and the waits of the protocol rely
on this. Here it may be executed at any time after it was sent: after its sender has got an unknown outcome, after it
was sent again, and long after the resize has ended. An answer may also come after the sender's view
has expired. Only a `BatchWriteItem` is executed within its time: it has no conditions, so it does not promise more
(docs/decisions/0024-batches-have-no-conditions.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.transport.classification import unanswered
from dynashard.transport.interface import Wire
from dynashard_checks.schedules.database import WRITES, Database, Faults
from dynashard_checks.schedules.history import Check
from dynashard_checks.schedules.requests import summary
from dynashard_checks.schedules.scheduler import Actor

_HELD_TURNS: Final = (0, 0, 1, 3, 10, 30)
"""For how many turns a sender waits for a lost answer."""
_THROTTLED_AFTER_LOSS: Final = 0.3
"""The share of requests soon after a lost one that are throttled, because trouble often lasts."""
_PLAIN_WRITES: Final = frozenset({"PutItem", "UpdateItem"})
"""Writes of one item without unique fields, which go to its old home before the resize has reached MOVE."""
_DELAYS: Final = (0.0, 1.0, 10.0, 40.0, 70.0, 130.0, 190.0, 250.0, 310.0, 400.0)
"""How many seconds late a request is executed: up to several phases."""


@dataclass
class LateFaults(Faults):
    """Draws the faults of requests, which include late execution.

    Attributes:
        strays: whether only clients' writes of items meet a fault. They are executed at a later stage of the resize,
            with or without an answer.
    """

    strays: bool = False
    _soon: int = 0

    def draw(self, operation: str) -> str:
        """See `Faults.drawn`."""
        self._soon -= 1
        if self._soon >= 0 and self.rate and self.random.random() < _THROTTLED_AFTER_LOSS:
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
    """The database of schedules with late requests.

    Attributes:
        delay: lets an actor wait until a later stage of the resize; None for a wait of some seconds.
        straying: the operations of clients that are late if nothing else fails.
    """

    delay: Callable[[Actor], None] | None = None
    straying: frozenset[str] = _PLAIN_WRITES

    def _draw_fault(self, operation: str, request: Mapping[str, Any], check: Check | None) -> str:
        """See `Database._draw_fault`."""
        strays = isinstance(self.faults, LateFaults) and self.faults.strays
        if strays and (check is None or operation not in self.straying):
            return ""
        return super()._draw_fault(operation, request, check)

    def _inject(
        self, fault: str, actor: Actor, operation: str, request: Mapping[str, Any], check: Check | None
    ) -> Wire:
        batch = operation == "BatchWriteItem"
        if fault in ("throttled", "conflict", "unprocessed") or (batch and fault == "late"):
            return super()._inject(fault, actor, operation, request, check)
        if fault == "slow":
            if not batch:
                self._wait(actor, request)
            return self._send(actor, operation, request, check)
        if fault == "answer_lost":
            self._send(actor, operation, request, check)
        if fault == "late":
            self._execute_deliver_late(operation, request, check)
        for _ in range(self.faults.random.choice(_HELD_TURNS)):
            self.scheduler.pause(actor)
        raise unanswered(operation, "ReadTimeoutError", f"The request was hit: {fault}")

    def _wait(self, actor: Actor, request: Mapping[str, Any]) -> None:
        """Let time pass before the engine executes a request, even beyond the end of the sender's view."""
        actor.topology_read_at = None
        self._pass_time(actor, request)

    def _pass_time(self, actor: Actor, request: Mapping[str, Any]) -> None:
        del request
        if self.delay is not None:
            self.delay(actor)
        else:
            self.scheduler.sleep(actor, self.faults.random.choice(_DELAYS))

    def _execute_deliver_late(self, operation: str, request: Mapping[str, Any], check: Check | None) -> None:
        def arrive(ghost: Actor) -> None:
            self._pass_time(ghost, request)
            self.scheduler.note(ghost, lambda: f"arrives: {operation} {summary(request)}")
            try:
                self._send(ghost, operation, request, check)
            except DynashardError as error:
                self.scheduler.note(ghost, f"-> {type(error).__name__}")

        self._late += 1
        self.scheduler.spawn(f"late{self._late}", arrive)
