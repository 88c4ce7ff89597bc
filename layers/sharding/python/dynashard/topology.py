"""How many shards a logical partition has now.

Everything that routes asks a `Topology` for a `View` first and works under that view until it is done.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.placement import UNSHARDED


class Phase(StrEnum):
    """Where a logical partition stands between two shard counts."""

    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class View:
    """What one operation knows of a logical partition.

    Attributes:
        count: its shard count; `UNSHARDED` for the bare partition key.
        phase: always stable while counts are as declared.
    """

    count: int
    phase: Phase = Phase.STABLE


class Topology(Protocol):
    """Gives out views. Implementations are safe to share between threads."""

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


class DeclaredTopology:
    """Every logical partition has the count its entity declares."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:  # noqa: ARG002 - all partitions are alike
        """The declared count. Costs nothing."""
        return self._of(entity.shards.count if entity.shards else UNSHARDED)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:  # noqa: ARG002
        """The index's declared count. Costs nothing."""
        return self._of(index.shards.count if index.shards else UNSHARDED)

    def _of(self, count: int) -> View:
        view = self._views.get(count)
        return view or self._views.setdefault(count, View(count))
