"""Declared shard counts, used only if a caller asks for them by name, and checked against the topology table."""

from typing import Any, NamedTuple

from dynashard.entity import EntityDefinition, IndexDefinition, Shards
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.runtime import Runtime
from dynashard.topology.leased import LeasedTopology
from dynashard.topology.views import View
from dynashard.transport.interface import Transport


class DeclaredTopology:
    """The declared count of every logical partition and index. Safe to share between threads.

    A view raises `ConfigurationError` if the `leased` count differs or is changing. None trusts the declared ones.
    """

    def __init__(self, leased: LeasedTopology | None = None) -> None:
        self._leased = leased

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        """Return the view of a logical partition; see `Topology.view`."""
        declared = View(_count(entity.shards))
        return declared if self._leased is None else _agreed(self._leased.view(entity, partition), declared, partition)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        """Return the view of an index; see `Topology.index_view`."""
        declared = View(_count(index.shards))
        if self._leased is None:
            return declared
        return _agreed(self._leased.index_view(entity, index), declared, f"index {index.name} of {entity.name}")

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Forget the view of a logical partition; see `Topology.refresh`."""
        if self._leased is not None:
            self._leased.refresh(entity, partition)


def _count(shards: Shards | None) -> int:
    return shards.initial if shards else UNSHARDED


def _agreed(view: View, declared: View, what: str) -> View:
    if view.stable and view.count == declared.count and view.epochs is None:
        return view
    changing = "" if view.stable else f", changing to {view.new_count}"
    changing = " for its latest keys, and other counts for earlier ones" if view.epochs else changing
    raise ConfigurationError(
        f"{what} is declared with {declared.count} shards and has {view.count}{changing}: give topology_table= instead "
        "of topology=declared_counts(...)"
    )


class DeclaredCounts(NamedTuple):
    """The choice of declared shard counts; see `declared_counts`."""

    topology_table: str | None

    def over(self, transport: Transport, *, lease: float, runtime: Runtime) -> DeclaredTopology:
        """Return the topology; `lease` in seconds. Cost: no request."""
        if self.topology_table is None:
            return DeclaredTopology()
        return DeclaredTopology(LeasedTopology(transport, self.topology_table, lease=lease, runtime=runtime))


def declared_counts(*, topology_table: str | None) -> DeclaredCounts:
    """Use the shard counts that entities declare: `Dynashard(..., topology=declared_counts(topology_table=None))`.

    A logical partition or index is refused if its count in the topology table differs from the declared count, or is
    changing. None means that there is no such table, and that counts never change. If that is wrong, items are not
    found, and new ones are written where no reader looks.

    Cost: with a table, that of `LeasedTopology`; without, none.
    """
    return DeclaredCounts(topology_table)
