"""The sharding layer as a function uses it: single items, and listings whose cursors outlive a rotation of keys."""

import random as random_numbers
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from dynashard.cursor_keys import CursorKeys, Keys, cursor_key_reader
from dynashard.entity import Entity
from dynashard.errors import InvalidCursorError
from dynashard.hosting.growth import OpenLoad, Throttled, Witness, growing
from dynashard.hosting.settings import ServingSettings, TableSettings
from dynashard.reads import Page
from dynashard.repository import Patience
from dynashard.service import Collection, Dynashard
from dynashard.topology import LeasedTopology
from dynashard.transport.interface import Transport

R = TypeVar("R")

Open = Callable[[Keys], Dynashard]
"""Opens the layer with these cursor keys. What it opens shares one topology, so that a lease costs one read."""


class Backend:
    """Entities of a table. Safe to share between threads.

    Args:
        open_with: opens the layer.
        keys: the keys that sign cursors.
    """

    def __init__(self, open_with: Open, keys: CursorKeys) -> None:
        self._open = open_with
        self._cursor_keys = keys
        self._lock = Lock()
        self._opened: tuple[Keys, Dynashard] | None = None
        # Single items have no cursors: with a key of no use, they do not wait for the kept ones to be read.
        self._single = open_with(_of_no_use())

    def repository(self, entity: type[Entity]) -> Collection[Any]:
        """Single items of an entity."""
        return self._single.collection(entity)

    @property
    def entities(self) -> Dynashard:
        """All entities, for what hands out no cursors."""
        return self._single

    def page(self, entity: type[Entity], options: Mapping[str, Any], *others: type[Entity]) -> Page[Any]:
        """A page of an entity's listing, with the items of others that share its logical partitions.

        A cursor that does not verify is tried once more with keys read anew.

        Raises:
            InvalidCursorError: the cursor is not one of ours, or not for this listing.

        Cost: as the collection's `list`; the first page reads the cursor keys.
        """
        return self.reading(lambda db: db.collection(entity, *others).list(**options))

    def reading(self, read: Callable[[Dynashard], R]) -> R:
        """What `read` reads of the entities. If a cursor does not verify, once more with keys read anew.

        Raises:
            InvalidCursorError: as `page`.

        Cost: that of `read`; the first time, reads the cursor keys.
        """
        keys = self._cursor_keys.current()
        try:
            return read(self._with(keys))
        except InvalidCursorError:
            renewed = self._cursor_keys.after_unknown_key()
            if renewed == keys:
                raise
            return read(self._with(renewed))

    def _with(self, keys: Keys) -> Dynashard:
        with self._lock:
            if self._opened is None or self._opened[0] != keys:
                self._opened = (keys, self._open(keys))
            return self._opened[1]


def open_backend(
    settings: ServingSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    witness: Witness,
    *,
    clock: Callable[[], float] = time.time,
    random: Callable[[], float] = random_numbers.random,
    patience: Patience | None = None,
) -> Backend:
    """The entities of the settings' tables, for who serves callers.

    Args:
        settings: of the function.
        transport: how DynamoDB is reached.
        entities: those whose shard counts may grow by themselves.
        witness: gets the growth policy's news.
        clock: wall clock, in epoch seconds.
        random: evenly from 0 to below 1.
        patience: how long batches and scans go on against throttling.

    Cost: no request.
    """
    throttled = growing(settings, transport, entities, witness, clock=clock, random=random)
    open_with = _opener(settings, transport, throttled, clock, patience)
    return Backend(open_with, CursorKeys(cursor_key_reader(settings.cursor_keys, settings.cursor_secret_arn), clock))


def open_entities(
    settings: TableSettings,
    transport: Transport,
    entities: Sequence[type[Entity]],
    witness: Witness,
    *,
    clock: Callable[[], float] = time.time,
    random: Callable[[], float] = random_numbers.random,
    patience: Patience | None = None,
    open_load: OpenLoad | None = None,
) -> Dynashard:
    """The entities of the settings' table, for who hands out no cursors.

    Args:
        settings: of the function.
        transport: how DynamoDB is reached.
        entities: those whose shard counts may grow by themselves.
        witness: gets the growth policy's news.
        clock: wall clock, in epoch seconds.
        random: evenly from 0 to below 1.
        patience: how long batches and transactions go on against throttling.
        open_load: opens what knows how busy the table is; by default CloudWatch, except locally. Transactions are
            throttled without a reason: it is asked for it.

    Cost: no request.
    """
    throttled = growing(settings, transport, entities, witness, clock=clock, random=random, open_load=open_load)
    return _opener(settings, transport, throttled, clock, patience)(_of_no_use())


def _opener(
    settings: TableSettings,
    transport: Transport,
    throttled: Throttled,
    clock: Callable[[], float],
    patience: Patience | None,
) -> Open:
    topology = LeasedTopology(transport, settings.topology_table, lease=settings.topology_lease_seconds, clock=clock)

    def open_with(keys: Keys) -> Dynashard:
        return Dynashard(
            transport,
            table=settings.table,
            cursor_keys=list(keys),
            topology=topology,
            clock=clock,
            patience=patience,
            throttled=throttled,
        )

    return open_with


def _of_no_use() -> Keys:
    """A key that no other process knows: for what hands out no cursors."""
    return (secrets.token_urlsafe(),)
