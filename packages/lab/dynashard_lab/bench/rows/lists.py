"""Listing: pages of 100 items, whole, with three fields, and of an index, on a server that answers at once."""

from collections.abc import Iterator

from dynashard_lab.bench.clients.interface import DIRECT
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.rows.work import PAGES
from dynashard_lab.bench.stored import PAGE
from dynashard_lab.bench.world import World, canned_process


def rows(world: World) -> Iterator[Row]:
    """Yield pages of 100 items, the first one also with a heap that collections of garbage visit.

    The layer lists all shards; a page comes from one.
    """
    del world
    # More than a page in each shard, so that every answer has a key to continue from.
    with processors(1), canned_process(per_shard=2 * PAGE) as url, clients(url) as opened:
        for work in PAGES:
            limits = {} if work.limit is None else {DIRECT: Limit(work.limit)}
            yield Row(
                work.name, contenders(opened, work.operation), repeat=work.repeat, limits=limits, items=work.items
            )
        whole = PAGES[0]
        yield Row(
            f"{whole.name}, heap not frozen",
            contenders(opened, whole.operation),
            repeat=whole.repeat,
            items=whole.items,
            frozen=False,
        )
