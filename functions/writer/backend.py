"""The sharding layer as the writer uses it: its entities, whose counts grow when writes are throttled."""

import secrets
import time
from collections.abc import Callable, Sequence

from domain import ENTITIES, Exposed
from dynashard import Dynashard
from dynashard.hosting.backend import open_backend
from dynashard.hosting.growth import Witness
from dynashard.hosting.settings import ServingSettings
from dynashard.transport import Transport
from functions.writer.settings import Settings


def database_of(
    settings: Settings,
    transport: Transport,
    witness: Witness,
    *,
    exposed: Sequence[Exposed] = ENTITIES,
    clock: Callable[[], float] = time.time,
) -> Dynashard:
    """The entities of the table.

    Args:
        settings: of the writer.
        transport: the wire.
        witness: gets the growth policy's news.
        exposed: the entities.
        clock: wall clock, in epoch seconds.

    Cost: no request.
    """
    serving = ServingSettings(
        table=settings.table,
        topology_table=settings.topology_table,
        # The writer answers nobody, and lists nothing.
        idempotency_table="",
        cursor_keys=(secrets.token_urlsafe(),),
        environment=settings.environment,
        topology_lease_seconds=settings.lease,
        growth_mode=settings.growth_mode,
        growth_cooldown_seconds=settings.growth_cooldown_seconds,
        growth_quiet_seconds=settings.growth_quiet_seconds,
        endpoint=settings.endpoint,
    )
    entities = [each.entity for each in exposed]
    return open_backend(serving, transport, entities, witness, clock=clock).entities
