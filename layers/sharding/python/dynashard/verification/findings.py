"""What verification reports."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

_KEPT: Final = 1000


class Kind(StrEnum):
    """What is wrong."""

    AWAY = "away"
    """A live item stands where no reader looks for it, and its home is empty."""
    DOUBLE = "double"
    """A live item stands where no reader looks for it, and another one has its home."""
    MARKER = "marker"
    """A relocation marker is left over from a change that has ended."""
    LOST_TARGET = "lost_target"
    """A relocation marker stands at an item's home, so that its key cannot be used as it should."""
    INDEX = "index"
    """An item's index keys are not those that its fields give it."""
    UNREADABLE = "unreadable"
    """A stored item cannot be decoded."""
    COPY = "copy"
    """Copies differ from what their sources say."""
    EDGE = "edge"
    """The other half of an edge is missing."""
    COUNT = "count"
    """A counter of edges is off."""
    ROLL_UP = "roll_up"
    """A row of a roll-up says less than the items."""
    ATTACHMENT = "attachment"
    """An item points to an attachment that is not stored whole."""
    LEFTOVER = "leftover"
    """A version of an attachment that no item points to."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: what.
        where: the stored key, or the name of what differs.
        detail: what is wrong with it, in words.
        number: of how many things this tells.
        mended: whether it is right now.
    """

    kind: Kind
    where: str
    detail: str
    number: int = 1
    mended: bool = False

    def as_dict(self) -> dict[str, Any]:
        """In JSON values."""
        return {**asdict(self), "kind": self.kind.value}


@dataclass
class Report:
    """How far a verification has come.

    Attributes:
        items: stored items looked at.
        found: how many things are wrong, by kind; those that were mended included.
        mended: how many of them are right now, by kind.
        findings: the first thousand.
        changing: records of the topology whose count is changing: their items were not compared with their homes.
        stage: what is being looked at.
    """

    items: int = 0
    found: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    changing: set[str] = field(default_factory=set)
    stage: str = "items"

    def add(self, finding: Finding) -> None:
        """Add a finding."""
        self.found[finding.kind.value] += finding.number
        if finding.mended:
            self.mended[finding.kind.value] += finding.number
        if len(self.findings) < _KEPT:
            self.findings.append(finding)

    @property
    def total(self) -> int:
        """How many things are wrong, or were."""
        return sum(self.found.values())

    @property
    def left(self) -> int:
        """How many are wrong still."""
        return self.total - sum(self.mended.values())

    def as_dict(self) -> Mapping[str, Any]:
        """In JSON values."""
        return {
            "items": self.items,
            "found": dict(self.found),
            "mended": dict(self.mended),
            "findings": [each.as_dict() for each in self.findings],
            "changing": sorted(self.changing),
        }
