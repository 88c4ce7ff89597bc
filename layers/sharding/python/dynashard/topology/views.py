"""Views: snapshots of the shard map that one operation runs under."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any, Protocol

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.topology.epochs import Epochs


class Phase(StrEnum):
    """The phases of a resize from one shard count to another, in this order."""

    STABLE = "stable"
    """One count; nothing moves."""
    PREPARE = "prepare"
    """Clients learn that relocation markers may appear. They write under the old count; readers follow markers."""
    MOVE = "move"
    """New keys are created at their new homes only, and the mover relocates those that live at their old ones."""
    SETTLE = "settle"
    """All items are at their new homes; markers serve clients that are still in MOVE."""


@dataclass(frozen=True, slots=True)
class View:
    """A leased snapshot of the shard map for a logical partition or an index.

    Attributes:
        count: the shard count until a resize has settled; `UNSHARDED` for the bare partition key.
        target: the count it changes to; None when stable.
        expires: when the lease ends, in epoch seconds of the wall clock.
        markers: whether relocation markers may stand among the entity's items: from well before the first one is
            written until after the last one is swept.
        resized: whether the count was ever different. Items that the database stored late may then be at former homes,
            where readers must ignore them.
        version: differs after each update of the shard map; '' if unknown.
        epochs: the counts of keys by their times; None if `count` holds for all keys.
        complete: of an index: whether all items are in it that belong there, as far as backfills are known.
        former: of an index: smaller counts by which older entries may still stand, the smallest first.
    """

    count: int
    phase: Phase = Phase.STABLE
    target: int | None = None
    expires: float = inf
    markers: bool = False
    resized: bool = False
    version: str = field(default="", compare=False)
    epochs: Epochs | None = None
    former: tuple[int, ...] = ()
    complete: bool = field(default=True, compare=False)

    @property
    def stable(self) -> bool:
        """Whether no resize is under way."""
        return self.phase is Phase.STABLE

    @property
    def guard(self) -> tuple[Phase, int, int | None]:
        """What must not change while an operation relies on what it read under this view."""
        return self.phase, self.count, self.target

    @property
    def new_count(self) -> int:
        """The count after the resize; the current one when stable."""
        return self.count if self.target is None else self.target


class Topology(Protocol):
    """Returns views that have not expired. Implementations are safe to share between threads."""

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """Return the view of a logical partition, prefix included: `user.v1.User:abc`. Cost: one read a lease."""
        ...

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """Return the view of an index, which has a count of its own. Cost: one read a lease."""
        ...

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget the view of a logical partition, because a stored item contradicts it. The next view is read."""
        ...
