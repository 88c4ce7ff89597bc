"""Listing: pages of 100 items, whole and as mappings of three fields, on a server that answers at once."""

from collections.abc import Iterator

from dynashard_lab.bench.clients.interface import DIRECT
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.stored import PAGE
from dynashard_lab.bench.world import World, canned_process


def rows(world: World) -> Iterator[Row]:
    """Yield a page of 100 whole items, and one of three fields. The layer lists all shards; a page comes from one."""
    del world
    # More than a page in each shard, so that every answer has a key to continue from.
    with processors(1), canned_process(per_shard=2 * PAGE) as url, clients(url) as opened:
        for name, operation, limit in (
            (f"list {PAGE} items", "page", 0.12),
            (f"list {PAGE} items, three fields of each", "three_fields", 0.18),
        ):
            yield Row(name, contenders(opened, operation), repeat=4, limits={DIRECT: Limit(limit)}, items=PAGE)
