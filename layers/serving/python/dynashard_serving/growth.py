"""Shard counts that grow by themselves: hands throttles to the growth policy.

Nothing of resharding is imported before the first throttle: a cold start does not pay for it.
"""

import random as random_numbers
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import ThrottledError
from dynashard.runtime import Runtime
from dynashard.transport.interface import Transport
from dynashard_serving.settings import TableSettings

if TYPE_CHECKING:
    from dynashard.resharding import Resharder
    from dynashard_serving.growth_terms import AskLoad, Report

Throttled = Callable[[EntityDefinition[Any], str | None, ThrottledError], None]
OpenLoad = Callable[[TableSettings, Transport], "AskLoad | None"]
"""Opens what knows how busy a table is; None where nobody does."""


class Witness(Protocol):
    """Who is told what the growth policy does."""

    def grew(self, report: "Report", /) -> None:
        """The policy has news."""
        ...

    def growth_failed(self, error: Exception, /) -> None:
        """The policy itself has failed."""
        ...


class Growing:
    """Told of throttles. Builds the policy at the first one; safe to share between threads.

    Args:
        build: builds the policy, and gives what it wants to be told by.
        failed: told of an error of the policy, of which the caller of a request must not learn.
    """

    def __init__(self, build: Callable[[], Throttled], failed: Callable[[Exception], None]) -> None:
        self._build = build
        self._failed = failed
        self._policy: Throttled | None = None
        self._lock = Lock()

    def __call__(self, entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        """Take note of a throttle. Never raises and never waits; costs what `Growth.throttled` says."""
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
    witness: Witness,
    *,
    clock: Callable[[], float],
    random: Callable[[], float] = random_numbers.random,
    open_load: "OpenLoad | None" = None,
) -> Throttled:
    """What the layer tells of throttles.

    Args:
        settings: of the function.
        transport: how DynamoDB is reached.
        entities: the entities.
        witness: gets the policy's news.
        clock: wall clock, in epoch seconds.
        random: evenly from 0 to below 1.
        open_load: opens what knows how busy the table is; by default CloudWatch, except locally.
    """
    if settings.growth_mode == "off":
        return _let_be

    def build() -> Throttled:
        from dynashard_serving.growth_policy import GrowthSettings  # noqa: PLC0415 - only who is throttled pays for it
        from dynashard_serving.growth_requests import growth_of  # noqa: PLC0415

        growth = growth_of(
            _resharder(settings, transport, entities, Runtime(clock, random=random)),
            settings=GrowthSettings(
                settings.growth_mode, settings.growth_cooldown_seconds, settings.growth_quiet_seconds
            ),
            load=(open_load or cloudwatch)(settings, transport),
            report=witness.grew,
        )
        return growth.throttled

    return Growing(build, witness.growth_failed)


def _resharder(
    settings: TableSettings, transport: Transport, entities: Sequence[type[Entity]], runtime: Runtime
) -> "Resharder":
    from dynashard.resharding import Resharder, Timing  # noqa: PLC0415 - as above

    # Waits are the driver's business; a wish only says how long its record may be used.
    timing = Timing(lease=settings.topology_lease_seconds)
    return Resharder(
        transport,
        table=settings.table,
        topology_table=settings.topology_table,
        entities=list(entities),
        timing=timing,
        runtime=runtime,
    )


def cloudwatch(settings: TableSettings, transport: Transport) -> "AskLoad | None":
    """What asks CloudWatch about the table; None locally, where nobody counts. Costs nothing until it is asked."""
    from dynashard_serving.table_load import table_load  # noqa: PLC0415 - only who is throttled pays for it

    return None if settings.environment == "local" else table_load(transport, settings.table)


def _let_be(_entity: EntityDefinition[Any], _partition: str | None, _error: ThrottledError) -> None:
    """Growth is switched off."""
