"""Reading 100,000 items of 16 shards, each contender in a process of its own: processor time and memory."""

from collections.abc import Iterator
from typing import Final

from dynashard_lab.bench.clients.interface import CLIENTS, DIRECT, FLOOR, PYDYNOX_MODELS
from dynashard_lab.bench.contenders import installed
from dynashard_lab.bench.measure import Apart, Limit, Row
from dynashard_lab.bench.stored import SHARDS
from dynashard_lab.bench.world import World, canned_process

ITEMS: Final = 100_000
MOST_MEGABYTES: Final = 200


def rows(world: World) -> Iterator[Row]:
    """Yield one row. The layer reads four shards at a time, its peers one after the other; nobody keeps the items."""
    del world
    names = [name for name in CLIENTS if name != FLOOR]
    with canned_process(per_shard=ITEMS // SHARDS) as url:
        yield Row(
            f"scan {ITEMS:,} items",
            [
                Apart(name, ["-m", "dynashard_lab.bench.apart", "scan", ":".join(CLIENTS[name]), url])
                for name in installed(names)
            ],
            repeat=1,
            limits={DIRECT: Limit(0.25, to=PYDYNOX_MODELS, megabytes=MOST_MEGABYTES)},
            items=ITEMS,
            rounds=3,
            warmed=False,
        )
