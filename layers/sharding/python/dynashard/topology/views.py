"""What an operation knows of a shard count, and who tells it."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any, Protocol

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.placement import UNSHARDED


class Phase(StrEnum):
    """Where a logical partition stands between two shard counts; in this order, one phase at a time."""

    STABLE = "stable"
    """One count; nothing moves."""
    PREPARE = "prepare"
    """Everybody learns that marks may come. Writers go on under the old count; readers follow marks."""
    MOVE = "move"
    """Keys come to life at their new homes only, and the mover brings over those that live at their old ones."""
    SETTLE = "settle"
    """All items are at their new homes; marks keep those right who are still in MOVE."""


@dataclass(frozen=True, slots=True)
class View:
    """What one operation knows of a logical partition, or of an index. Usable until it expires.

    Attributes:
        count: the shard count in force before a change has settled; `UNSHARDED` for the bare partition key.
        phase: where a change stands; stable outside changes.
        target: the count it changes to; None when stable.
        expires: when the lease ends, in epoch seconds of the wall clock.
        marks: whether marks may stand anywhere in the entity's items: from well before the first one is written
            until after the last one is swept.
        changed: whether the count was ever different. Items that the database stored late may then be at former homes,
            where readers must ignore them.
        version: another one after each change of what the topology says; '' if that is not told.
    """

    count: int
    phase: Phase = Phase.STABLE
    target: int | None = None
    expires: float = inf
    marks: bool = False
    changed: bool = False
    version: str = field(default="", compare=False)

    @property
    def stable(self) -> bool:
        """Whether no change is under way."""
        return self.phase is Phase.STABLE

    @property
    def guard(self) -> tuple[Phase, int, int | None]:
        """What must not change while an operation goes by what it has found under this view."""
        return self.phase, self.count, self.target

    @property
    def new_count(self) -> int:
        """The count after the change; the present one when stable."""
        return self.count if self.target is None else self.target


class Topology(Protocol):
    """Gives out views that have not expired. Implementations are safe to share between threads."""

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """The view of an entity's logical partition, prefix included: `user.v1.User:abc`.

        Cost: none, or one read a lease.
        """
        ...

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """The view of an index, which has a count of its own.

        Cost: none, or one read a lease.
        """
        ...

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget the view of a logical partition: what was found stored says that it is out of date.

        Cost: the next view is read anew.
        """
        ...


class DeclaredTopology:
    """Every logical partition has the count its entity declares, for ever."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:  # noqa: ARG002 - all partitions are alike
        """The declared count. Costs nothing."""
        return self._of(entity.shards.initial if entity.shards else UNSHARDED)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:  # noqa: ARG002
        """The index's declared count. Costs nothing."""
        return self._of(index.shards.count if index.shards else UNSHARDED)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Declared counts do not change."""

    def _of(self, count: int) -> View:
        view = self._views.get(count)
        return view or self._views.setdefault(count, View(count))
