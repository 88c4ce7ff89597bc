"""Hand throttles to the growth policy, so that shard counts grow by themselves.

Resharding is not imported before the first throttle, so that a cold start does not load it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Transport
from dynashard_serving.growth.demand import CountingTransport, Demand
from dynashard_serving.settings import TableSettings

if TYPE_CHECKING:
    from dynashard_serving.growth.terms import GrowthSettings, LoadSource, Report

Throttled = Callable[[EntityDefinition[Any], str | None, ThrottledError], None]
OpenLoad = Callable[[TableSettings, Transport], "LoadSource | None"]
"""Opens what reports how busy a table is; None if nothing does."""


class GrowthObserver(Protocol):
    """Receives the events of the growth policy."""

    def grew(self, report: "Report", /) -> None:
        """Receive an event."""
        ...

    def growth_failed(self, error: Exception, /) -> None:
        """Receive an error of the policy itself."""
        ...


class Growing:
    """Receives throttles. Builds the policy at the first one; safe to share between threads.

    `failed` receives errors of the policy, because the caller of a request must not see them.
    """

    def __init__(self, build: Callable[[], Throttled], failed: Callable[[Exception], None]) -> None:
        self._build = build
        self._failed = failed
        self._policy: Throttled | None = None
        self._lock = own_lock(self)

    def __call__(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Report a throttle to the policy. Never raises and never waits; costs what `Growth.throttled` does."""
        try:
            self._built()(entity, partition, error)
        except Exception as failure:  # noqa: BLE001 - the request has an error of its own to answer
            self._failed(failure)

    def _built(self) -> Throttled:
        with self._lock:
            if self._policy is None:
                self._policy = self._build()
            return self._policy


def growing(
    settings: TableSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    observer: GrowthObserver,
    *,
    runtime: Runtime = SYSTEM,
    open_load: "OpenLoad | None" = None,
    demand: Demand | None = None,
) -> Throttled:
    """Return what a `Dynashard` reports throttles to.

    `open_load` opens what reports how busy the table is; by default CloudWatch, except locally. `demand` is what a
    `CountingTransport` under that `Dynashard` fills; without it, counts double.
    """
    if settings.growth_mode == "off":
        return lambda _entity, _partition, _error: None

    def build() -> Throttled:
        # Only a function that is throttled pays for these imports.
        from dynashard.resharding import Resharder, Timing  # noqa: PLC0415
        from dynashard_serving.growth.requests import growth_of  # noqa: PLC0415

        resharder = Resharder(
            transport,
            table=settings.table,
            topology_table=settings.topology_table,
            entities=list(entities),
            # A driver waits between phases; a request only says how long its record may be used.
            timing=Timing(lease=settings.topology_lease_seconds),
            runtime=runtime,
        )
        growth = growth_of(
            resharder,
            settings=growth_settings(settings),
            load=(open_load or cloudwatch)(settings, transport),
            demand=demand,
            report=observer.grew,
        )
        return growth.throttled

    return Growing(build, observer.growth_failed)


def growth_settings(settings: TableSettings) -> "GrowthSettings":
    """Return the settings of the growth policy among those of a function."""
    from dynashard_serving.growth.terms import GrowthSettings  # noqa: PLC0415 - only for functions that are throttled

    return GrowthSettings(
        settings.growth_mode,
        settings.growth_cooldown_seconds,
        settings.growth_quiet_seconds,
        most_minutes=settings.growth_most_minutes,
        mover_share=settings.growth_mover_share,
    )


def counting(
    settings: TableSettings,
    transport: Transport,
    demand: Demand,
    entities: Sequence[type[Entity]],
    throttled: Throttled,
) -> Transport:
    """Return the transport of a `Dynashard` whose requests are counted for the growth policy, if there is one.

    `throttled` is what `growing` returned; it receives the throttles that retries hide, while they are sustained.
    """
    if settings.growth_mode == "off":
        return transport

    def executed(
        operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], reasons: Collection[str]
    ) -> None:
        # Only a function that is throttled pays for the import.
        from dynashard_serving.growth.retries import RetriedThrottles  # noqa: PLC0415

        RetriedThrottles(entities, demand, throttled, settings.table).executed(operation, request, answer, reasons)

    return CountingTransport(transport, settings.table, demand, executed)


def cloudwatch(settings: TableSettings, transport: Transport) -> "LoadSource | None":
    """Return what asks CloudWatch about the table; None locally. Costs nothing until it is asked."""
    from dynashard_serving.table_load import table_load  # noqa: PLC0415 - only for functions that are throttled

    return None if settings.environment == "local" else table_load(transport, settings.table)
