"""The sharding layer as a function uses it, opened from the function's settings: its transport, and its entities."""

import os
import secrets
from collections.abc import Callable, Sequence
from functools import partial

from dynashard.cursor_keys import CursorKeys, Keys, keys_in
from dynashard.entity import Entity
from dynashard.growth.opening import GrowthObserver, GrowthOptions, OpenLoad
from dynashard.growth.settings import LoadSource
from dynashard.repository import RetryPolicy
from dynashard.runtime import SYSTEM, Runtime
from dynashard.service import Dynashard
from dynashard.transport import connect
from dynashard.transport.aws import secret_reader
from dynashard.transport.interface import Transport
from dynashard_serving.settings import ServingSettings, TableSettings


def cursor_key_reader(keys: Keys, secret_arn: str | None) -> Callable[[], Keys]:
    """Return a function that reads signing keys: from a secret if there is one, else `keys`, newest first."""
    if secret_arn is None:
        return lambda: keys
    read = secret_reader(secret_arn, "cursor keys")
    return lambda: keys_in(read())


def cloudwatch(environment: str, transport: Transport, table: str) -> LoadSource | None:
    """Return what asks CloudWatch about a table; None locally. Costs nothing until it is asked."""
    from dynashard_serving.table_load import table_load  # noqa: PLC0415 - only for functions that are throttled

    return None if environment == "local" else table_load(transport, table)


def open_transport(settings: TableSettings) -> Transport:
    """Return the transport that `TRANSPORT` names; `close()` releases it. Cost: no request; see `connect`.

    With `TRACE_CALLS`, its calls are reported to the daemon of X-Ray that the environment names, if any.
    """
    transport = connect(
        settings.endpoint, transport=settings.transport, operation_seconds=settings.topology_operation_seconds
    )
    if not settings.trace_calls:
        return transport
    from dynashard_serving.telemetry.tracing import traced  # noqa: PLC0415 - off unless the settings say so

    return traced(transport, os.environ)


def open_backend(
    settings: ServingSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    observer: GrowthObserver,
    *,
    runtime: Runtime = SYSTEM,
    retry_policy: RetryPolicy | None = None,
) -> Dynashard:
    """Open the entities of the settings' tables for a function that serves callers. Cost: no request.

    The keys that sign cursors are read when the first cursor is signed or checked.
    """
    keys = CursorKeys(cursor_key_reader(settings.cursor_keys, settings.cursor_secret_arn), runtime.clock)
    growth = _growth(settings, entities, observer, None)
    return _opened(settings, transport, cursor_keys=keys, growth=growth, runtime=runtime, retry_policy=retry_policy)


def open_entities(
    settings: TableSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    observer: GrowthObserver,
    *,
    runtime: Runtime = SYSTEM,
    retry_policy: RetryPolicy | None = None,
    open_load: OpenLoad | None = None,
) -> Dynashard:
    """Open the entities of the settings' table for a function that answers no listings. Cost: no request.

    `open_load` opens what reports how busy the table is, by default CloudWatch, except locally. The growth policy asks
    it about throttled transactions, because those have no reason.
    """
    # A key that no other process knows, because no cursor leaves this one.
    keys = [secrets.token_urlsafe()]
    growth = _growth(settings, entities, observer, open_load)
    return _opened(settings, transport, cursor_keys=keys, growth=growth, runtime=runtime, retry_policy=retry_policy)


def _growth(
    settings: TableSettings,
    entities: Sequence[type[Entity]],
    observer: GrowthObserver,
    open_load: OpenLoad | None,
) -> GrowthOptions:
    """Return how counts grow in a function: it requests resizes, and the reshard function carries them out."""
    return GrowthOptions(
        settings=settings.growth,
        drives=False,
        observer=observer,
        load=open_load or partial(cloudwatch, settings.environment),
        entities=entities,
    )


def _opened(
    settings: TableSettings,
    transport: Transport,
    *,
    cursor_keys: Sequence[str] | CursorKeys,
    growth: GrowthOptions,
    runtime: Runtime,
    retry_policy: RetryPolicy | None,
) -> Dynashard:
    return Dynashard(
        transport,
        table=settings.table,
        topology_table=settings.topology_table,
        cursor_keys=cursor_keys,
        lease=settings.topology_lease_seconds,
        runtime=runtime,
        retry_policy=retry_policy,
        growth=growth,
        operation_seconds=settings.topology_operation_seconds,
        clocks=settings.clocks,
    )
