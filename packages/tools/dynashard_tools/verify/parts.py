"""The parts of a verification, and the interface of the checks that do them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from dynashard.entity import EntityDefinition
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Finding


class Part(StrEnum):
    """What can be verified by itself, as `--only` names it."""

    ITEMS = "items"
    """Items are at their homes, and no relocation marker is left over."""
    INDEX = "index"
    """Index keys match the fields."""
    COPIES = "copies"
    """Copies match their sources."""
    EDGES = "edges"
    """Both halves of an edge are stored, and nodes have as many edges as their counters say."""
    ROLLUPS = "rollups"
    """Rows of roll-ups match their items."""
    ATTACHMENTS = "attachments"
    """All pieces are stored of the attachments that items point to."""
    UNIQUE = "unique"
    """Unique values are reserved for the items that have them, and no others."""
    COUNTERS = "counters"
    """The parts of a counter agree with each other, and readers see all of them."""
    LEFTOVERS = "leftovers"
    """An item points to each stored version of an attachment."""
    TOPOLOGY = "topology"
    """The records of shard counts can be true."""


@dataclass
class Sum:
    """Adds up numbers that begin at zero again for each of several steps."""

    advance: Callable[[int], None]
    total: int = 0

    def from_here(self) -> Callable[[int], None]:
        """Return what is called with the numbers of one step."""
        before = self.total

        def count(number: int) -> None:
            self.total = before + number
            self.advance(self.total)

        return count


class Check:
    """Finds one kind of fault, and repairs it if it may.

    `look` and `note` are called for the stored items that may be compared, as they are read, and `finish` after the
    last one. A check overrides what it needs.

    Attributes:
        part: the part that it belongs to.
        reads_items: whether it needs to see the stored items.
        repairs: what it may do to repair a fault, as `--mend` announces it; empty if it only reports.
    """

    part: ClassVar[Part]
    reads_items: ClassVar[bool] = False
    repairs: ClassVar[str] = ""

    def look(self, entity: EntityDefinition[Any], item: Wire) -> Iterable[Finding]:  # noqa: ARG002 - overridden
        """Find faults of a stored item that is at its home."""
        return ()

    def note(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Record what `finish` needs of a stored item, wherever it is."""

    def support(self, row: Wire) -> None:
        """Record what `finish` needs of a stored row that is the layer's own but of no entity."""

    def finish(self, advance: Callable[[int], None]) -> Iterable[Finding]:  # noqa: ARG002 - overridden
        """Find faults of what is derived from the items.

        Args:
            advance: called with the number of things that were compared so far.
        """
        return ()
