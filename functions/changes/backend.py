"""The sharding layer as this function uses it: what follows changes, and counts that grow when that is throttled."""

import random as random_numbers
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import domain
from domain import ENTITIES, Exposed
from dynashard import Dynashard, LeasedTopology
from dynashard.changes import Consumer
from dynashard.hosting.growth import Witness, cloudwatch, growing
from dynashard.hosting.settings import ServingSettings
from dynashard.repository import Patience
from dynashard.transport import Transport
from functions.changes.settings import Settings

if TYPE_CHECKING:
    from dynashard.resharding.growth_terms import AskLoad

DECLARED: Final = ("COPIES", "ROLL_UPS")
"""Names of the domain under which it declares what follows from changes."""
OpenLoad = Callable[[ServingSettings, Transport], "AskLoad | None"]


def database_of(
    settings: Settings,
    transport: Transport,
    witness: Witness,
    *,
    exposed: Sequence[Exposed] = ENTITIES,
    clock: Callable[[], float] = time.time,
    random: Callable[[], float] = random_numbers.random,
    patience: Patience | None = None,
    open_load: OpenLoad = cloudwatch,
) -> Dynashard:
    """The entities of the table.

    Args:
        settings: of the function.
        transport: the wire.
        witness: gets the growth policy's news.
        exposed: the entities whose counts may grow.
        clock: wall clock, in epoch seconds.
        random: evenly from 0 to below 1.
        patience: how long batches and transactions go on against throttling.
        open_load: opens what knows how busy the table is. Transactions, which roll-ups and copies are written by, are
            throttled without a reason: it is asked for it.

    Cost: no request.
    """
    # No cursor leaves this function: a key of no use elsewhere does.
    keys = [secrets.token_urlsafe()]
    serving = ServingSettings(
        table=settings.table,
        topology_table=settings.topology_table,
        idempotency_table="",
        environment=settings.environment,
        topology_lease_seconds=settings.lease,
        growth_mode=settings.growth_mode,
        growth_cooldown_seconds=settings.growth_cooldown_seconds,
        growth_quiet_seconds=settings.growth_quiet_seconds,
        cursor_keys=tuple(keys),
        endpoint=settings.endpoint,
    )
    entities = [each.entity for each in exposed]
    return Dynashard(
        transport,
        table=settings.table,
        cursor_keys=keys,
        topology=LeasedTopology(transport, settings.topology_table, lease=settings.lease, clock=clock),
        clock=clock,
        patience=patience,
        throttled=growing(serving, transport, entities, witness, clock=clock, random=random, open_load=open_load),
    )


def consumers(db: Dynashard) -> Iterator[Consumer]:
    """Who follows changes: what the domain declares."""
    for name in DECLARED:
        for declared in getattr(domain, name, ()):
            yield declared.consumer(db)
