"""What the controller keeps about a resize, in the record it concerns."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from typing import Any, Final

from dynashard.errors import UndecodableItemError
from dynashard.resharding.progress import Counters
from dynashard.topology import Record

SELF_STARTED: Final = frozenset({"throttle", "quiet"})
"""Causes of resizes that nobody has asked for."""
_FLOATS: Final = (
    *("started", "budget", "seen", "margin", "passed", "share", "creating", "expected"),
    *("write_units", "read_units"),
)


@dataclass(frozen=True, slots=True)
class Resize(Counters):
    """A resize from the shard count `origin` to `target`, until its relocation markers are swept.

    Its counters are 0 until its work is done. `Resharder.start` describes budget, cause and survey, and `Status` the
    other fields that both have.

    Attributes:
        tasks: into how many tasks its work is divided.
        seen: when the last publication was found stored, in epoch seconds; None if that is unknown. Waits begin here,
            because a request that publishes may arrive long after it was sent.
        margin: operation and skew in seconds, which the controller adds to a lease; None before.
        passed: when all items were found moved, in epoch seconds; None before.
        check: whether the new homes are checked before it begins: nothing may stand there yet.
        rewrites: whether entries of an index that were written before get places of the new count. If not, it holds for
            new entries alone, and readers look in both places.
        share: the part of each shard's units that it may take; None for the worker's setting.
        creating: the share of a shard's write units with which callers created items when it was requested.
        expected: how long it was expected to take, in seconds; None if that was not judged.
        declined: what it would have taken, if it was declined for that.
        others: stored members that only another release knows. They stay as they are until the resize has ended.
    """

    id: str
    origin: int
    target: int
    tasks: int
    cause: str = "unknown"
    started: float = 0.0
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
    rewrites: bool = True
    share: float | None = None
    creating: float = 0.0
    expected: float | None = None
    declined: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Record) -> "Resize | None":
        """Return the resize of a record that is under way, or else the last one.

        Raises `UndecodableItemError` if it lacks a member that every release stores.
        """
        stored = record.resize
        if "id" not in stored:
            return None
        if missing := sorted(_REQUIRED - stored.keys()):
            raise UndecodableItemError(
                f"the resize in the topology record {record.key} cannot be read, because it has no {missing[0]}: "
                "deploy the release that wrote it, and let the resize end"
            )
        known = {name: stored[name] for name in _MEMBERS if name in stored}
        for name in _FLOATS:
            if name in known:
                known[name] = float(known[name])
        return cls(**known, others={name: value for name, value in stored.items() if name not in _MEMBERS})

    def stored(self) -> Mapping[str, Any]:
        """Return its stored form, with numbers that decode to equal ones."""
        values = {name: getattr(self, name) for name in _MEMBERS}
        return {**self.others} | {
            name: Decimal(str(value)) if isinstance(value, float) else value
            for name, value in values.items()
            if value is not None
        }


_MEMBERS: Final = tuple(each.name for each in fields(Resize) if each.name != "others")
_REQUIRED: Final = {each.name for each in fields(Resize) if each.default is each.default_factory is MISSING}
