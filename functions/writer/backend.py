"""The sharding layer as the writer uses it: its collections, and counts that grow when writes are throttled."""

import secrets
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from domain import ENTITIES, Exposed
from dynashard import Dynashard, EntityDefinition, LeasedTopology
from dynashard.errors import ThrottledError
from dynashard.transport import Transport
from functions.writer.settings import Settings

Throttled = Callable[[EntityDefinition[Any], str | None, ThrottledError], None]


def database_of(
    settings: Settings,
    transport: Transport,
    *,
    exposed: Sequence[Exposed] = ENTITIES,
    clock: Callable[[], float] = time.time,
    failed: Callable[[Exception], None] = lambda _: None,
) -> Dynashard:
    """The entities of the table. The writer lists nothing, so its cursor key is of no use to anybody.

    Args:
        settings: of the writer.
        transport: the wire.
        exposed: the entities.
        clock: wall clock, in epoch seconds.
        failed: told of an error of the growth policy.

    Cost: no request.
    """
    return Dynashard(
        transport,
        table=settings.table,
        cursor_keys=[secrets.token_urlsafe()],
        topology=LeasedTopology(transport, settings.topology_table, lease=settings.lease, clock=clock),
        clock=clock,
        throttled=_growing(settings, transport, exposed, clock, failed),
    )


def _growing(
    settings: Settings,
    transport: Transport,
    exposed: Sequence[Exposed],
    clock: Callable[[], float],
    failed: Callable[[Exception], None],
) -> Throttled:
    """What is told of throttles; the growth policy is built at the first one."""

    @cache
    def policy() -> Throttled:
        from dynashard.resharding import Resharder, Timing  # noqa: PLC0415 - only who is throttled pays for it
        from dynashard.resharding.policy import growth_of  # noqa: PLC0415
        from dynashard.transport.load import table_load  # noqa: PLC0415

        resharder = Resharder(
            transport,
            table=settings.table,
            topology_table=settings.topology_table,
            entities=[each.entity for each in exposed],
            timing=Timing(lease=settings.lease),
            clock=clock,
        )
        load = None if settings.environment == "local" else table_load(transport, settings.table)
        return growth_of(resharder, transport, settings.topology_table, settings=settings.growth, load=load).throttled

    def throttled(entity: EntityDefinition[Any], partition: str | None, error: ThrottledError) -> None:
        if settings.growth.mode == "off":
            return
        try:
            policy()(entity, partition, error)
        except Exception as failure:  # noqa: BLE001 - the write has an error of its own to tell of
            failed(failure)

    return throttled
