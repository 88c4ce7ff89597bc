"""Declared shard counts, used only if a caller asks for them by name, and checked against the topology table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.topology.leased import LeasedTopology
from dynashard.topology.views import DeclaredTopology, Topology, View
from dynashard.transport.interface import Transport


@dataclass(frozen=True, slots=True)
class DeclaredCounts:
    """The choice of declared shard counts; see `declared_counts`."""

    topology_table: str | None

    def over(self, transport: Transport, *, lease: float, clock: Callable[[], float]) -> Topology:
        """Return the topology. Cost: no request."""
        if self.topology_table is None:
            return DeclaredTopology()
        return AgreedTopology(LeasedTopology(transport, self.topology_table, lease=lease, clock=clock))


def declared_counts(*, topology_table: str | None) -> DeclaredCounts:
    """Use the shard counts that entities declare: `Dynashard(..., topology=declared_counts(topology_table=None))`.

    Args:
        topology_table: the table of shard counts. A logical partition or index is refused if its count in this table
            differs from the declared count, or is changing. None means that there is no such table, and that counts
            never change. If that is wrong, items are not found, and new ones are written where no reader looks.

    Cost: with a table, that of `LeasedTopology`; without, none.
    """
    return DeclaredCounts(topology_table)


class AgreedTopology:
    """The counts of a topology table, refused where they are not the declared ones. Safe to share between threads.

    Args:
        leased: the counts that hold.
    """

    def __init__(self, leased: LeasedTopology) -> None:
        self._leased = leased

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """The view of a logical partition; raises `ConfigurationError` if it is not as declared."""
        declared = entity.shards.initial if entity.shards else UNSHARDED
        return _agreed(self._leased.view(entity, partition), declared, partition)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """The view of an index; raises `ConfigurationError` if it is not as declared."""
        declared = index.shards.initial if index.shards else UNSHARDED
        return _agreed(self._leased.index_view(entity, index), declared, f"index {index.name} of {entity.name}")

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget what is known of a logical partition."""
        self._leased.refresh(entity, partition)


def _agreed(view: View, declared: int, what: str) -> View:
    if view.stable and view.count == declared:
        return view
    changing = "" if view.stable else f", changing to {view.new_count}"
    raise ConfigurationError(
        f"{what} is declared with {declared} shards and has {view.count}{changing}: give topology_table= instead of "
        "topology=declared_counts(...)"
    )
