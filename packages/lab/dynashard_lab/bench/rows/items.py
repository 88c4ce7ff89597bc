"""Single items and batches through every client, on a server that answers at once: only the client's CPU counts."""

from collections.abc import Iterator

from dynashard_lab.bench.clients.interface import DIRECT
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.rows.work import SINGLE
from dynashard_lab.bench.world import World, canned_process


def rows(world: World) -> Iterator[Row]:
    """Yield reads, writes and an update of one item, a BatchWriteItem of 25, and a BatchGetItem of 100."""
    del world
    with processors(1), canned_process() as url, clients(url) as opened:
        for work in SINGLE:
            yield Row(
                work.name,
                contenders(opened, work.operation),
                repeat=work.repeat,
                limits={} if work.limit is None else {DIRECT: Limit(work.limit)},
                items=work.items,
            )
