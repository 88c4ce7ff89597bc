"""One process of a backend: a `Dynashard` with transport, leases, retries and a growth policy of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from dynashard import Entity
from dynashard.growth.terms import Report
from dynashard.resharding import Resharder, Share, Timing
from dynashard.service import Dynashard
from dynashard.transport.interface import WRITING, Wire
from dynashard_lab.simulate.layer.entities import Items
from dynashard_lab.simulate.layer.operations import Caller
from dynashard_lab.simulate.scenario import LayerSpec
from dynashard_lab.simulate.settings import Settings as LimitSettings
from dynashard_lab.simulate.wire import Executed, VirtualTransport, World
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


@dataclass(slots=True)
class GrowthUnits:
    """The units that growing takes, reads and writes alike.

    Attributes:
        counting: whether to count what processes do now.
        resizes: those of requesting resizes and of carrying them out, with what moves items.
        reads: those with which processes read the topology table, to place items and to decide about counts.
    """

    counting: Callable[[], bool]
    resizes: float = 0.0
    reads: float = 0.0

    def of_process(self, operation: str, _request: Mapping[str, Any], answer: Wire) -> None:
        """Count a request of a process, if it is one to the topology table."""
        capacity = answer["ConsumedCapacity"]
        if isinstance(capacity, dict) and capacity["TableName"] == TABLE:
            # Nearly all requests, while nothing is read or requested.
            return
        units = sum(each["CapacityUnits"] for each in _entries(capacity) if each["TableName"] == TOPOLOGY)
        if units and self.counting():
            self.resizes += units if operation in WRITING else 0.0
            self.reads += 0.0 if operation in WRITING else units

    def of_worker(self, _operation: str, _request: Mapping[str, Any], answer: Wire) -> None:
        """Count a request of what carries resizes out."""
        self.resizes += sum(each["CapacityUnits"] for each in _entries(answer["ConsumedCapacity"]))


def _entries(capacity: Wire | list[Wire]) -> list[Wire]:
    return capacity if isinstance(capacity, list) else [capacity]


def clocks_off(layer: LayerSpec) -> list[float]:
    """Return by how many seconds the wall clock of each process is ahead: evenly from the most behind to the most."""
    most, others = layer.clocks_off, layer.processes - 1
    return [most * (1 - 2 * number / others) for number in range(layer.processes)] if others else [-most]


def open_process(
    world: World,
    layer: LayerSpec,
    models: Sequence[type[Entity]],
    events: GrowthEvents,
    *,
    ahead: float = 0.0,
    executed: Executed | None = None,
) -> Dynashard:
    """Return a process. Its operations may overlap; it has no threads. Arguments as of `VirtualTransport`."""
    transport = _transport(world, layer, ahead, executed)
    settings = TableSettings(
        table=TABLE,
        topology_table=TOPOLOGY,
        topology_lease_seconds=layer.lease,
        topology_operation_seconds=layer.operation,
        growth_mode=layer.growth,
        growth_quiet_seconds=layer.quiet,
    )
    db = open_entities(
        settings, transport, models, events, runtime=transport.runtime, open_load=lambda _settings, _transport: None
    )
    # Single writes of a batch are sent by threads of the layer, which virtual time cannot order.
    db.store = structs.replace(db.store, batch_concurrency=1)
    return db


def open_resharder(
    world: World,
    layer: LayerSpec,
    models: Sequence[type[Entity]],
    limits: LimitSettings,
    executed: Executed | None = None,
) -> Resharder:
    """Return what carries out resizes: the controller and the mover. `limits` are those of a partition.

    Its wall clock is as far ahead as one may be: then an epoch begins as late as it can.
    """
    transport = _transport(world, layer, layer.clocks_off, executed)
    return Resharder(
        transport,
        table=TABLE,
        topology_table=TOPOLOGY,
        entities=list(models),
        timing=Timing(lease=layer.lease, operation=layer.operation),
        runtime=transport.runtime,
        share=Share(layer.mover_share, limits.partition_write_units, limits.partition_read_units),
        most_seconds=60 * layer.growth_minutes,
    )


def _transport(world: World, layer: LayerSpec, ahead: float, executed: Executed | None) -> VirtualTransport:
    return VirtualTransport(
        world,
        request_seconds=layer.request_seconds,
        operation_seconds=layer.operation,
        ahead=ahead,
        executed=executed,
    )


def caller_of(db: Dynashard, items: Items) -> Caller:
    """Return what a process sends the operations of a demand with."""
    return Caller(db.collection(items.model), db.store.runtime.clock)
