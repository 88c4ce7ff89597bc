"""Hand throttles to the growth policy, so that shard counts grow by themselves.

What decides and what changes counts is not imported before the first throttle, so that a cold start does not load it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from dynashard.entity import Entity, EntityDefinition
from dynashard.entity.registry import REGISTRY
from dynashard.errors import ThrottledError
from dynashard.growth.demand import CountingTransport, Demand
from dynashard.growth.settings import DEFAULTS, GrowthMode, GrowthSettings, LoadSource
from dynashard.key_clock import DEFAULT_BOUNDS, ClockBounds
from dynashard.repository.store import Throttled, ignore_throttles
from dynashard.runtime import Runtime
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Transport

if TYPE_CHECKING:
    from dynashard.growth.driving import BackgroundDriver
    from dynashard.growth.policy import Growth
    from dynashard.growth.terms import Report
    from dynashard.resharding import Resharder


class GrowthObserver(Protocol):
    """Receives the events of the growth policy."""

    def grew(self, report: "Report", /) -> None:
        """Receive an event."""
        ...

    def growth_failed(self, error: Exception, /) -> None:
        """Receive an error of the policy itself, which the caller of a request does not see."""
        ...


OpenLoad = Callable[[Transport, str], LoadSource | None]
"""Opens what reports how busy a table is, from the transport and the table's name; None if nothing does."""


class GrowthOptions(Struct, frozen=True, kw_only=True):
    """How the counts of a `Dynashard` grow.

    Attributes:
        settings: when they grow.
        drives: carry resizes out in a thread of this process. False if a worker does that: the backend's, the local
            stack's, or `dynashard reshard`.
        observer: receives events; None writes them to the logger `dynashard.growth`.
        load: opens what reports how busy the table is, which decides about throttles without a reason.
        entities: the entities of the table; None for all that this process has declared. A driver needs every entity
            that shares logical partitions with one of them.
    """

    settings: GrowthSettings = DEFAULTS
    drives: bool = True
    observer: GrowthObserver | None = None
    load: OpenLoad = lambda _transport, _table: None
    entities: Sequence[type[Entity]] | None = None

    @property
    def every_entity(self) -> Sequence[type[Entity]]:
        """The entities of the table."""
        return [each.model for each in REGISTRY.values()] if self.entities is None else self.entities


class Tables(Struct, frozen=True, kw_only=True):
    """Where counts grow: the connection, the tables, and the times of this process, in seconds.

    `clocks` is what all processes assume about clocks where counts depend on the time of keys.
    """

    transport: Transport
    table: str
    topology_table: str
    lease: float
    operation_seconds: float
    runtime: Runtime
    clocks: ClockBounds = DEFAULT_BOUNDS

    def resharder(self, options: GrowthOptions) -> "Resharder":
        """Return what changes shard counts here. Cost: no request."""
        # Only a process that changes counts pays for these imports.
        from dynashard.resharding import Resharder, Share, Timing  # noqa: PLC0415

        return Resharder(
            self.transport,
            table=self.table,
            topology_table=self.topology_table,
            entities=options.every_entity,
            timing=Timing(self.lease, self.operation_seconds, clocks=self.clocks),
            runtime=self.runtime,
            share=Share(options.settings.mover_share),
            most_seconds=options.settings.most_seconds,
        )


class OpenedGrowth:
    """Growth of one `Dynashard`. Builds the policy at the first throttle; safe to share between threads.

    Attributes:
        transport: that of the tables, with what the policy has to count.
    """

    def __init__(self, tables: Tables, options: GrowthOptions) -> None:
        self._tables = tables
        self._options = options
        self._demand = Demand(tables.runtime.clock)
        self._policy: Growth | None = None
        self._driver: BackgroundDriver | None = None
        self._closed = False
        self._lock = own_lock(self)
        self.transport: Transport = CountingTransport(tables.transport, tables.table, self._demand, self._executed)

    def throttled(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Report a throttle to the policy. Never raises and never waits; costs what `Growth.throttled` does."""
        try:
            self._built().throttled(entity, partition, error)
        except Exception as failure:  # noqa: BLE001 - the request has an error of its own to answer
            self._observer.growth_failed(failure)

    def close(self) -> None:
        """End the thread that carries resizes out, if there is one, within about 3 seconds."""
        with self._lock:
            self._closed, driver = True, self._driver
        if driver is not None:
            driver.close()

    def _built(self) -> "Growth":
        with self._lock:
            if self._policy is None:
                self._policy = self._build()
            return self._policy

    def _build(self) -> "Growth":
        # Only a process that is throttled pays for these imports.
        from dynashard.growth.requests import growth_of  # noqa: PLC0415

        here, options = self._tables, self._options
        resharder = here.resharder(options)
        if options.drives and not self._closed:
            from dynashard.growth.driving import BackgroundDriver  # noqa: PLC0415
            from dynashard.growth.logger import LOGGER  # noqa: PLC0415

            self._driver = BackgroundDriver(resharder, failed=self._observer.growth_failed, log=LOGGER.warning)
        return growth_of(
            resharder,
            settings=options.settings,
            load=options.load(here.transport, here.table),
            demand=self._demand,
            report=self._reported,
        )

    def _reported(self, report: "Report") -> None:
        # A thread that cannot be started is an error, and the request is stored all the same.
        self._observer.grew(report)
        if self._driver is not None and report.event.value == "asked":
            self._driver.requested()

    @property
    def _observer(self) -> GrowthObserver:
        from dynashard.growth.logger import GrowthLogger  # noqa: PLC0415 - as in `_build`

        return self._options.observer or GrowthLogger()

    def _executed(
        self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], reasons: Collection[str]
    ) -> None:
        """Count a request that was executed after throttles, which are reported while they are sustained."""
        from dynashard.growth.retries import RetriedThrottles  # noqa: PLC0415 - as in `_build`

        retried = RetriedThrottles(self._options.every_entity, self._demand, self.throttled, self._tables.table)
        retried.executed(operation, request, answer, reasons)


class NoGrowth:
    """Counts that do not grow: nothing is counted, and throttles are ignored."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.throttled: Throttled = ignore_throttles

    def close(self) -> None:
        """Do nothing."""


def options_of(growth: GrowthMode | GrowthOptions) -> GrowthOptions:
    """Return the options, or those of a mode with otherwise the defaults; raises `ConfigurationError` for no mode."""
    return growth if isinstance(growth, GrowthOptions) else GrowthOptions(settings=GrowthSettings(growth))


def open_growth(tables: Tables, options: GrowthOptions) -> OpenedGrowth | NoGrowth:
    """Open the growth of a table. Cost: no request."""
    return NoGrowth(tables.transport) if options.settings.mode == "off" else OpenedGrowth(tables, options)
