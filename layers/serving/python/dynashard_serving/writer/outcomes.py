"""The outcome of a piece of work, and of a whole batch."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class End(Enum):
    """How a piece of work has ended."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    """It was done before: a message or an item came a second time."""
    REFUSED = "refused"
    """Nothing was written, and the record of the operation says why: its message is done."""
    LEFT = "left"
    """It cannot be done now; its message stays on the queue."""
    POISON = "poison"
    """It can never be done; it goes to the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one piece of work has ended.

    Attributes:
        end: its kind.
        reason: a stable word for why it was not done.
        message: a sentence about the reason.
        document: the item, for `POISON`.
        wait: for `LEFT`, after how many seconds at the earliest it can be done; 0 if that is not known.
        unexpected: whether the cause is unknown, so that only a few more tries are worthwhile.
        ours: for `REFUSED`, whether its caller is not at fault, so that operators have to learn of it.
        revision: what the item has now, for `STORED`; None if it was deleted.
    """

    end: End
    reason: str = ""
    message: str = ""
    document: Any = None
    wait: float = 0
    unexpected: bool = False
    ours: bool = False
    revision: str | None = None


STORED = Outcome(End.STORED)
DUPLICATE = Outcome(End.DUPLICATE)


@dataclass(slots=True)
class Tally:
    """The outcomes of a batch, for log and metrics. `lags` are seconds from acceptance to done, one a message.

    What waits for its own time is not counted as `left`, which says that the table does not keep up. What was refused
    is counted as `failed` if its caller is not at fault, and otherwise nowhere, because its record says why to the
    caller.
    """

    stored: int = 0
    duplicates: int = 0
    left: int = 0
    poison: int = 0
    failed: int = 0
    lags: list[float] = field(default_factory=list)

    def count(self, outcome: Outcome) -> None:
        """Take one more piece of work into account."""
        match outcome.end:
            case End.STORED:
                self.stored += 1
            case End.DUPLICATE:
                self.duplicates += 1
            case End.LEFT if not outcome.wait:
                self.left += 1
            case End.POISON:
                self.poison += 1
            case End.REFUSED if outcome.ours:
                self.failed += 1
