"""Single items and batches through every client, on a server that answers at once: only the client's CPU counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dynashard_lab.bench.clients.interface import DIRECT
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.stored import BATCH, PAGE
from dynashard_lab.bench.world import World, canned_process


@dataclass(frozen=True, slots=True)
class _Work:
    """An operation of `Client`, how many items it answers, how often a sample does it, and the limit of the layer."""

    name: str
    operation: str
    items: int
    repeat: int
    limit: float


_WORK: Final = (
    _Work("get an item", "get", 1, 50, 0.09),
    _Work("put an item, on a condition, old values returned", "put", 1, 50, 0.12),
    _Work(f"put a batch of {BATCH}", "batch_write", BATCH, 10, 0.17),
    _Work(f"get a batch of {PAGE}", "batch_get", PAGE, 5, 0.13),
)


def rows(world: World) -> Iterator[Row]:
    """Yield get and put of one item, a BatchWriteItem of 25, and a BatchGetItem of 100."""
    del world
    with processors(1), canned_process() as url, clients(url) as opened:
        for work in _WORK:
            yield Row(
                work.name,
                contenders(opened, work.operation),
                repeat=work.repeat,
                limits={DIRECT: Limit(work.limit)},
                items=work.items,
            )
