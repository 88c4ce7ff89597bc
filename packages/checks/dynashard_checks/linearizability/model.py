"""A register and its operations: the effect of each on a state, and the answers that are true for a state.

Each key of a store is a register. Its state is absent, or the version of the last write together with a total that
updates add to. Every write has a version of its own, so a state identifies its write.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

Version = Hashable
"""The identity of a write. Every write has another one."""

UNSEEN: Final[Version] = "a version that nobody saw"


class Kind(Enum):
    """The kind of an operation. With `expected`, put, update and delete apply to this version only."""

    CREATE = "create"
    PUT = "put"
    UPDATE = "update"
    DELETE = "delete"
    DROP = "drop"
    """Delete the item if there is one."""
    GET = "get"


class Answer(Enum):
    """The answer to a caller."""

    OK = "ok"
    EXISTS = "exists"
    """A create found a live item; nothing was written."""
    MISSING = "missing"
    """A get, update or delete found no live item; nothing was written."""
    MISMATCH = "mismatch"
    """The item is at another version than `expected`, or there is none; nothing was written."""
    UNKNOWN = "unknown"
    """The operation takes effect once at any later moment, or never. No answer at all means the same."""


@dataclass(frozen=True, slots=True)
class State:
    """A live item."""

    version: Version
    total: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """An item in an answer.

    Attributes:
        state: the item; None if it was absent.
        has_total: whether the answer has the total.
    """

    state: State | None
    has_total: bool = True

    def agrees(self, state: State | None) -> bool:
        """Return whether the item may be the state of the register."""
        if state is None or self.state is None:
            return state is self.state
        if state.version != self.state.version:
            return False
        return not self.has_total or state.total == self.state.total


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one client on one key. A history does not have operations that were refused without effect.

    Attributes:
        kind: what it does.
        invoked: when the client sent it, in seconds.
        returned: when the client got its answer.
        answer: the answer.
        version: the version that a create, put or update writes.
        expected: the version that it requires.
        total: the total that a create or put writes.
        adds: what an update adds to the total.
        seen: the item in the answer: what a get read, what an update wrote, or what a mismatch found.
        created: whether a put answers that the key had no live item; None if the answer does not say.
        name: identifies the operation in reports.
    """

    kind: Kind
    invoked: float
    returned: float = inf
    answer: Answer = Answer.UNKNOWN
    version: Version = None
    expected: Version = None
    total: int = 0
    adds: int = 0
    seen: Seen | None = None
    created: bool | None = None
    name: str = ""

    def __str__(self) -> str:
        parts = [self.name, self.kind.value]
        parts += [] if self.version is None else [f"writes {self.version}"]
        parts += [] if self.expected is None else [f"if at {self.expected}"]
        parts += [] if not self.adds else [f"adds {self.adds}"]
        parts.append(f"= {self.answer.value}")
        if self.seen is not None:
            state = self.seen.state
            parts.append("saw none" if state is None else f"saw {state.version} ({state.total})")
        parts += [] if self.created is None else ["created" if self.created else "replaced"]
        return " ".join(part for part in parts if part) + f" [{self.invoked:.6f}, {self.returned:.6f}]"


def effect(  # noqa: PLR0911 - one for each kind
    operation: Operation, state: State | None
) -> tuple[bool, State | None]:
    """Return whether the operation takes effect on a state, and the state of the register afterwards."""
    kind, expected = operation.kind, operation.expected
    if kind is Kind.GET:
        return False, state
    if kind is Kind.DROP:
        return True, None
    if kind is Kind.CREATE:
        return (True, State(operation.version, operation.total)) if state is None else (False, state)
    if expected is not None and (state is None or state.version != expected):
        return False, state
    if kind is Kind.PUT:
        return True, State(operation.version, operation.total)
    if state is None:
        return False, state
    return True, State(operation.version, state.total + operation.adds) if kind is Kind.UPDATE else None


def answered(operation: Operation, state: State | None) -> tuple[bool, State | None]:
    """Return whether the answer is true for a state before the operation, and the state after it."""
    answer, seen = operation.answer, operation.seen
    if answer is Answer.EXISTS:
        return state is not None, state
    if answer is Answer.MISSING:
        return state is None, state
    if answer is Answer.MISMATCH:
        other = state is None or state.version != operation.expected
        return other and (seen is None or seen.agrees(state)), state
    if operation.kind is Kind.GET:
        return seen is not None and seen.agrees(state), state
    applies, after = effect(operation, state)
    if not applies:
        return False, state
    true = operation.created is None or operation.created is (state is None)
    return true and (seen is None or seen.agrees(after)), after


def keeps(operation: Operation) -> bool:
    """Return whether an operation with this answer leaves the register unchanged."""
    return operation.kind is Kind.GET or operation.answer not in (Answer.OK, Answer.UNKNOWN)
