"""Reads and writes on a server that answers after 5 ms: while a client waits, its code leaves the caches."""

from collections.abc import Iterator
from typing import Final

from dynashard_lab.bench.clients.interface import DIRECT, PYDYNOX_DICTIONARIES
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.stored import BATCH, PAGE
from dynashard_lab.bench.world import World, canned_process

_DELAY_MS: Final = 5.0
_WORK: Final = (
    ("get an item", "get", 1),
    ("put an item, on a condition, old values returned", "put", 1),
    (f"put a batch of {BATCH}", "batch_write", BATCH),
    (f"get a batch of {PAGE}", "batch_get", PAGE),
    (f"list {PAGE} items", "page", PAGE),
    (f"list {PAGE} items, three fields of each", "three_fields", PAGE),
)


def rows(world: World) -> Iterator[Row]:
    """Yield the rows of single items, batches and listings. The limit is to be ahead of pydynox's dictionaries."""
    del world
    with processors(1), canned_process(per_shard=2 * PAGE, delay_ms=_DELAY_MS) as url, clients(url) as opened:
        for name, operation, items in _WORK:
            yield Row(
                f"{name}, server after {_DELAY_MS:g} ms",
                contenders(opened, operation),
                repeat=4,
                limits={DIRECT: Limit(1.0, to=PYDYNOX_DICTIONARIES)},
                items=items,
            )
