"""What verification reports."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dynashard.entity import Undecodable

_KEPT: Final = 1000


class Kind(StrEnum):
    """What is wrong."""

    AWAY = "away"
    """A live item is stored where no reader looks for it, and its home is empty."""
    DOUBLE = "double"
    """A live item is stored where no reader looks for it, and another live item is at its home."""
    MARKER = "marker"
    """A relocation marker is left over from a resize that has ended."""
    LOST_TARGET = "lost_target"
    """A relocation marker is at the home of a key, so writes of the key are refused."""
    INDEX = "index"
    """An item's index keys do not match its fields."""
    UNREADABLE = "unreadable"
    """A stored item cannot be decoded, or its fields contradict its key."""
    UNREVISED = "unrevised"
    """An item under the keys of an entity has no type or no revision, and the entity is not declared to adopt any."""
    DAMAGED_MARKER = "damaged_marker"
    """A relocation marker names no possible shard count."""
    COPY = "copy"
    """Copies differ from what their sources say."""
    EDGE = "edge"
    """The other half of an edge is missing."""
    COUNT = "count"
    """A counter of edges is off."""
    COUNTER = "counter"
    """The parts of a counter disagree, are beyond a bound, or are not all read."""
    ROLL_UP = "roll_up"
    """A row of a roll-up counts less than its items."""
    ATTACHMENT = "attachment"
    """An item points to an attachment of which pieces are missing."""
    LEFTOVER = "leftover"
    """No item points to a version of an attachment."""
    UNRESERVED = "unreserved"
    """A unique value of an item is not reserved for it, or until another time than that of its expiry."""
    NOT_UNIQUE = "not_unique"
    """Another live item has the same unique value."""
    RESERVATION = "reservation"
    """A reservation is left over: no item has its value."""
    UNCOPIED = "uncopied"
    """No copies can be made of an item."""
    ROLL_UP_ABOVE = "roll_up_above"
    """A row of a roll-up counts more than its items. That is right if items were deleted or have expired."""
    TOPOLOGY = "topology"
    """A record of the topology table is damaged, so nothing of its family was compared."""
    OTHER = "other"
    """A row's key belongs to no entity."""


UNFIT: Final = frozenset({Kind.UNREADABLE, Kind.UNREVISED, Kind.DAMAGED_MARKER, Kind.UNCOPIED})
"""Rows that are left out because they do not fit their declaration. They are named, and never touched."""


class Change(NamedTuple):
    """A value before and after a repair, in DynamoDB JSON; None for an absent one."""

    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        where: the stored key, or the name of what differs.
        number: how many faults it stands for.
        mended: whether it was repaired.
        changes: what its repair changes, by attribute, or by row if it changes several: the old and the new value,
            None for an absent one. Of one finding, the first hundred.
    """

    kind: Kind
    where: str
    detail: str
    number: int = 1
    mended: bool = False
    changes: Mapping[str, Change] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        changes = {name: change._asdict() for name, change in self.changes.items()}
        return {**asdict(self), "kind": self.kind.value, "changes": changes}


def unreadable(row: Undecodable) -> Finding:
    """Return the finding of a stored item that does not fit its declaration."""
    where = f"{row.partition_key} / {row.sort_key}"
    return Finding(Kind.UNREADABLE, where, row.problem.partition("\n")[0])


@dataclass
class Report:
    """The progress and the findings of a verification.

    Attributes:
        items: how many stored items were checked.
        others: how many rows belong to no entity, and were not judged.
        uncounted: how many rows are of a family with a damaged topology record, and were not judged.
        compared: how many things each other part has compared.
        found: the number of faults by kind, including those that were repaired.
        findings: the first thousand findings.
        changing: topology records whose count is changing. Their items were not compared with their homes.
    """

    items: int = 0
    others: int = 0
    uncounted: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    changing: set[str] = field(default_factory=set)
    stage: str = "items"
    _unreadable: set[str] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Add a finding. A row that several parts cannot read is one finding."""
        if finding.kind is Kind.UNREADABLE:
            if finding.where in self._unreadable:
                return
            self._unreadable.add(finding.where)
        self.found[finding.kind.value] += finding.number
        if finding.mended:
            self.mended[finding.kind.value] += finding.number
        if len(self.findings) < _KEPT:
            self.findings.append(finding)

    @property
    def total(self) -> int:
        """How many things were wrong."""
        return sum(self.found.values())

    @property
    def left(self) -> int:
        """How many are still wrong."""
        return self.total - sum(self.mended.values())

    @property
    def done(self) -> int:
        """How many things its stage has compared so far."""
        return self.compared.get(self.stage, self.items)

    @property
    def unfit(self) -> int:
        """How many rows were left out because they do not fit their declaration."""
        return sum(self.found[kind.value] for kind in UNFIT)

    def as_dict(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "items": self.items,
            "others": self.others,
            "without_counts": self.uncounted,
            "compared": dict(self.compared),
            "found": dict(self.found),
            "mended": dict(self.mended),
            "findings": [each.as_dict() for each in self.findings],
            "changing": sorted(self.changing),
        }
