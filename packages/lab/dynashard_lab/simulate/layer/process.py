"""One process of a backend: a `Dynashard` with transport, leases, retries and a growth policy of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dynashard import Entity
from dynashard.growth.terms import Report
from dynashard.resharding import Resharder, Share, Timing
from dynashard.service import Collection, Dynashard
from dynashard_lab.simulate.layer.entities import Items
from dynashard_lab.simulate.scenario import LayerSpec
from dynashard_lab.simulate.settings import Settings as LimitSettings
from dynashard_lab.simulate.wire import VirtualTransport, World
from dynashard_serving.backend import open_entities
from dynashard_serving.settings import TableSettings

TABLE: Final = "items"
TOPOLOGY: Final = "topology"


@dataclass(slots=True)
class GrowthEvents:
    """Collects what the growth policies of all processes report, and what an operator is shown."""

    reports: list[tuple[float, Report]] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    clock: Callable[[], float] = float

    def grew(self, report: Report, /) -> None:
        """Keep an event with its time."""
        self.reports.append((self.clock(), report))

    def note(self, text: str) -> None:
        """Keep what an operator is shown."""
        self.notes.append((round(self.clock(), 3), text))

    def first(self) -> list[tuple[float, str]]:
        """Return the first event of each kind with its time, and all requests for counts."""
        kept: dict[tuple[str, int | None], tuple[float, str]] = {}
        for at, report in self.reports:
            kept.setdefault((report.event, report.target), (round(at, 3), f"{report.event}: {report.reason}"))
        return sorted([*self.notes, *kept.values()])

    def growth_failed(self, error: Exception, /) -> None:
        """Fail the run: the policy itself has an error."""
        raise error


def open_process(world: World, layer: LayerSpec, models: Sequence[type[Entity]], events: GrowthEvents) -> Dynashard:
    """Return a process. Its operations may overlap; it has no threads."""
    transport = VirtualTransport(world, request_seconds=layer.request_seconds, operation_seconds=layer.operation)
    settings = TableSettings(
        table=TABLE,
        topology_table=TOPOLOGY,
        topology_lease_seconds=layer.lease,
        topology_operation_seconds=layer.operation,
        growth_mode=layer.growth,
        growth_quiet_seconds=layer.quiet,
    )
    db = open_entities(
        settings, transport, models, events, runtime=world.runtime, open_load=lambda _settings, _transport: None
    )
    # Single writes of a batch are sent by threads of the layer, which virtual time cannot order.
    db.store = replace(db.store, batch_concurrency=1)
    return db


def open_resharder(world: World, layer: LayerSpec, models: Sequence[type[Entity]], limits: LimitSettings) -> Resharder:
    """Return what carries out resizes: the controller and the mover. `limits` are those of a partition."""
    return Resharder(
        VirtualTransport(world, request_seconds=layer.request_seconds, operation_seconds=layer.operation),
        table=TABLE,
        topology_table=TOPOLOGY,
        entities=list(models),
        timing=Timing(lease=layer.lease, operation=layer.operation),
        runtime=world.runtime,
        share=Share(layer.mover_share, limits.partition_write_units, limits.partition_read_units),
        most_seconds=60 * layer.growth_minutes,
    )


def collection_of(db: Dynashard, items: Items) -> Collection[Any]:
    """Return the collection of a demand's items."""
    return db.collection(items.model)
