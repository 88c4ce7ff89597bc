"""Make way for the mover while a shard count changes and callers create more than the old shards take.

In the MOVE phase a create also writes a relocation marker (a tombstone with a forwarding address) to the old shard,
at the price of a move. If callers ask for more than that shard takes, each create that is executed delays the change
by one move, and the demand is met only after the change. So fewest requests are throttled if the mover goes first: a
process that is mostly throttled there sends few writes to that shard, and refuses the others, as DynamoDB would.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import DynashardError, TableThrottledError, ThrottledError
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO, PK
from dynashard.transport.deadline import seeks_evidence
from dynashard.transport.interface import Call, Resend, Transport, Wire

PAUSE_SECONDS: Final = 10.0
"""The mean time between two writes to an old shard after one was throttled."""
OVERLOADED: Final = 0.25
"""The share of throttled writes from which on a process makes way. A mover that yields causes fewer throttles."""
MOVING_SECONDS: Final = 5.0
"""How long after its last create with a marker a stored partition key counts as an old shard."""
FORGOTTEN_SECONDS: Final = 60.0
"""How long after that a create begins anew: it belongs to a later change, because a change takes longer to be swept."""
_WEIGHT: Final = 0.05
"""The weight of one write in the share."""
_SHORTER: Final = 0.9
"""The pause after a write that was executed, relative to the pause before."""
_SHORTEST: Final = 0.01
"""Seconds of a pause from which on there is none."""
_MOST_KEYS: Final = 4096
_SINGLE: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


@dataclass(slots=True, eq=False, repr=False)
class _Gate:
    """What one process may send to one old shard. Threads that share it may lose an update without harm."""

    asked: float = 0.0
    """When the last create with a marker was asked for, in epoch seconds."""
    share: float = 0.0
    """The share of throttled writes, the last ones weighing most."""
    pause: float = 0.0
    """Seconds between two writes; 0 if they are not bounded."""
    opens: float = 0.0
    """When the next write may be sent, in epoch seconds."""
    throttle: ThrottledError | None = None

    def throttled(self, error: ThrottledError, now: float, jitter: float) -> None:
        self.throttle = error
        self.share += _WEIGHT * (1.0 - self.share)
        if self.pause or self.share > OVERLOADED:
            self.pause = PAUSE_SECONDS
            self.opens = now + self.pause * jitter

    def executed(self, now: float, jitter: float) -> None:
        self.share -= _WEIGHT * self.share
        self.pause *= _SHORTER
        if self.pause < _SHORTEST:
            self.pause = 0.0
        self.opens = now + self.pause * jitter


class YieldingTransport:
    """A transport that makes way for the mover; see `Transport`.

    It sends fewer requests and changes none: what it refuses was not executed, as what DynamoDB throttles.
    """

    def __init__(self, inner: Transport, table: str, runtime: Runtime) -> None:
        self._inner = inner
        self._table = table
        self._runtime = runtime
        self._gates: dict[str, _Gate] = {}

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`. Raises `ThrottledError` for a write that makes way."""
        marked = _marked_shard(request, self._table) if operation == "TransactWriteItems" else None
        gate = self._gate(operation, request, marked)
        if gate is not None:
            self._pass(gate, operation)
        try:
            answer = self._inner.call(operation, request, resend=resend)
        except ThrottledError as error:
            if marked is not None and gate is None:
                gate = self._new_gate(marked)
            if gate is not None and not isinstance(error, TableThrottledError):
                gate.throttled(error, self._runtime.clock(), self._jitter())
            raise
        if gate is not None:
            gate.executed(self._runtime.clock(), self._jitter())
        return answer

    def _gate(self, operation: str, request: Mapping[str, Any], marked: str | None) -> _Gate | None:
        """Return the gate of the old shard that a request writes to, if there is one."""
        # What finds out what became of a write is never refused here.
        if not self._gates or seeks_evidence():
            return None
        now = self._runtime.clock()
        if marked is not None:
            gate = self._gates.get(marked)
            if gate is not None and not 0 <= now - gate.asked < FORGOTTEN_SECONDS:
                gate = self._gates[marked] = _Gate()
            if gate is not None:
                gate.asked = now
            return gate
        if operation not in _SINGLE or request.get("TableName") != self._table:
            return None
        gate = self._gates.get((request.get("Key") or request["Item"])[PK]["S"])
        return gate if gate is not None and 0 <= now - gate.asked <= MOVING_SECONDS else None

    def _new_gate(self, key: str) -> _Gate:
        if len(self._gates) >= _MOST_KEYS:
            self._gates.clear()
        return self._gates.setdefault(key, _Gate(self._runtime.clock()))

    def _pass(self, gate: _Gate, operation: str) -> None:
        now = self._runtime.clock()
        left = gate.opens - now
        # A clock that was set back does not tell how long the pause has lasted.
        if 0 < left < 2 * PAUSE_SECONDS and gate.throttle is not None:
            raise type(gate.throttle)(
                f"{operation} was not sent: its shard is being moved and takes no more writes now. Try again later.",
                operation=operation,
                aws_code=gate.throttle.aws_code,
                reasons=gate.throttle.reasons,
                retry_after=math.ceil(left),
            )
        # Until it is answered, no other write of this process is sent.
        gate.opens = now + gate.pause * self._jitter()

    def _jitter(self) -> float:
        return 0.5 + self._runtime.random()

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        return self._inner.call_all(calls, concurrency=concurrency)

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once; see `Transport.try_all`."""
        return self._inner.try_all(calls, concurrency=concurrency)

    def close(self) -> None:
        """Close the transport; see `Transport.close`."""
        self._inner.close()


def _marked_shard(request: Mapping[str, Any], table: str) -> str | None:
    """Return the stored partition key where a transaction puts a marker for an item that it creates."""
    for step in request.get("TransactItems", ()):
        put = step.get("Put")
        if put is not None and put.get("TableName") == table and MOVED_TO in put["Item"]:
            return str(put["Item"][PK]["S"])
    return None
