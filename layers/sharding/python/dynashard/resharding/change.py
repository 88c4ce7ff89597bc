"""What the controller keeps about a change, in the record it concerns."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from dynashard.topology import Record


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a shard count, from the request until its marks are swept.

    Attributes:
        id: tells this change from all others.
        origin: the count before it.
        target: the count after it.
        cause: why it was asked for: `operator`, `throttle`, `abort`, ...
        started: when, in epoch seconds.
        tasks: into how many tasks its work is divided.
        budget: write units a second that its work may take; None for no bound.
        survey: whether items are counted beforehand.
        paused: whether it stands still until somebody resumes it.
        error: why it was paused, if not by an operator.
        back_to: the count to change back to when it is over.
        total: how many items there are to move, as counted beforehand; None if not (yet) known.
        seen: when what was published last was found published, in epoch seconds; None if that is not known. Waits
            begin here: a request that publishes may arrive long after it was sent.
        margin: operation and skew in seconds, as whoever carries the change out adds them to a lease; None before.
        passed: when all items were found moved, in epoch seconds; None before.
        check: whether the new homes are looked at before it begins: nothing may stand there yet.
        moved, late, swept, left, write_units, read_units: sums, once its work is done; see `Progress`.
    """

    id: str
    origin: int
    target: int
    cause: str
    started: float
    tasks: int
    budget: float | None = None
    survey: bool = True
    paused: bool = False
    error: str | None = None
    back_to: int | None = None
    total: int | None = None
    seen: float | None = None
    margin: float | None = None
    passed: float | None = None
    check: bool = False
    moved: int = 0
    late: int = 0
    swept: int = 0
    left: int = 0
    write_units: float = 0.0
    read_units: float = 0.0

    @classmethod
    def of(cls, record: Record) -> "Change | None":
        """The change that a record tells of: the one under way, or else the last one."""
        stored = record.change
        if "id" not in stored:
            return None
        known = {field.name: stored[field.name] for field in fields(cls) if field.name in stored}
        for name in ("started", "budget", "seen", "margin", "passed", "write_units", "read_units"):
            if name in known:
                known[name] = float(known[name])
        return cls(**known)

    def stored(self) -> Mapping[str, Any]:
        """As a record keeps it: numbers so that what is read back is equal."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: Decimal(str(value)) if isinstance(value, float) else value
            for name, value in values.items()
            if value is not None
        }

    def but(self, **changed: Any) -> "Change":
        """The change with some of its fields changed."""
        return replace(self, **changed)
