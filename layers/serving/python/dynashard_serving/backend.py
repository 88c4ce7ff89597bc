"""The sharding layer as a function uses it, opened from the function's settings."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from dynashard.cursor_keys import CursorKeys, Keys, keys_in
from dynashard.entity import Entity
from dynashard.repository import RetryPolicy
from dynashard.runtime import SYSTEM, Runtime
from dynashard.service import Collection, Dynashard
from dynashard.transport.aws import secret_reader
from dynashard.transport.interface import Transport
from dynashard_serving.growth.connection import GrowthObserver, OpenLoad, Throttled, counting, growing
from dynashard_serving.growth.demand import Demand
from dynashard_serving.settings import ServingSettings, TableSettings


class Backend:
    """The entities of a table, for functions that serve callers. Safe to share between threads.

    The keys that sign cursors are read when the first cursor is signed or checked.
    """

    def __init__(self, entities: Dynashard) -> None:
        self.entities = entities
        self._collections: dict[tuple[type[Entity], ...], Collection[Any]] = {}

    def collection(self, entity: type[Entity], *others: type[Entity]) -> Collection[Any]:
        """The items of an entity, with those of others that share its logical partitions.

        It is the same collection each time: it learns how large items are, and its ordered listings read less by that.
        """
        models = (entity, *others)
        found = self._collections.get(models)
        # Two threads may each make one; that of the first is kept.
        return found or self._collections.setdefault(models, self.entities.collection(*models))


def cursor_key_reader(keys: Keys, secret_arn: str | None) -> Callable[[], Keys]:
    """Return a function that reads signing keys: from a secret if there is one, else `keys`, newest first."""
    if secret_arn is None:
        return lambda: keys
    read = secret_reader(secret_arn, "cursor keys")
    return lambda: keys_in(read())


def open_backend(
    settings: ServingSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    observer: GrowthObserver,
    *,
    runtime: Runtime = SYSTEM,
    retry_policy: RetryPolicy | None = None,
) -> Backend:
    """Open the entities of the settings' tables for a function that serves callers. Cost: no request."""
    demand = Demand(runtime.clock)
    throttled = growing(settings, transport, entities, observer, runtime=runtime, demand=demand)
    counted = counting(settings, transport, demand, entities, throttled)
    keys = CursorKeys(cursor_key_reader(settings.cursor_keys, settings.cursor_secret_arn), runtime.clock)
    return Backend(
        _opened(settings, counted, cursor_keys=keys, throttled=throttled, runtime=runtime, retry_policy=retry_policy)
    )


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
    demand = Demand(runtime.clock)
    throttled = growing(settings, transport, entities, observer, runtime=runtime, open_load=open_load, demand=demand)
    counted = counting(settings, transport, demand, entities, throttled)
    # A key that no other process knows, because no cursor leaves this one.
    keys = [secrets.token_urlsafe()]
    return _opened(settings, counted, cursor_keys=keys, throttled=throttled, runtime=runtime, retry_policy=retry_policy)


def _opened(
    settings: TableSettings,
    transport: Transport,
    *,
    cursor_keys: Sequence[str] | CursorKeys,
    throttled: Throttled,
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
        throttled=throttled,
        operation_seconds=settings.topology_operation_seconds,
    )
