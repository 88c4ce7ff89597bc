"""Reads and writes on a server that answers after 5 ms, and on the local engine.

While a client waits, its code leaves the caches. The limit is to be ahead of pydynox's dictionaries.
"""

from collections.abc import Iterator
from typing import Final

from dynashard.transport import Transport
from dynashard_lab.bench.clients.interface import CLIENTS, DIRECT, FLOOR, PYDYNOX_DICTIONARIES, Client
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Limit, Row
from dynashard_lab.bench.processors import processors
from dynashard_lab.bench.rows.work import PAGES, SINGLE
from dynashard_lab.bench.stored import BATCH, INDEX_SHARDS, PAGE, SHARDS, TABLE, attached_item, user_item
from dynashard_lab.bench.world import World, canned_process

_DELAY_MS: Final = 5.0
_AHEAD: Final = {DIRECT: Limit(1.0, to=PYDYNOX_DICTIONARIES)}


def rows(world: World) -> Iterator[Row]:
    """Yield the rows of single items, batches and listings on the server that waits."""
    del world
    with processors(1), canned_process(per_shard=2 * PAGE, delay_ms=_DELAY_MS) as url, clients(url) as opened:
        yield from _rows(opened, f"server after {_DELAY_MS:g} ms")


def on_the_engine(world: World) -> Iterator[Row]:
    """Yield the same rows on the local engine."""
    transport = world.transport()
    _store(transport)
    transport.close()
    # The floor reads the canned server's headers only.
    names = [name for name in CLIENTS if name != FLOOR]
    with processors(1), clients(world.engine_url, names=names) as opened:
        yield from _rows(opened, "local engine")


def _rows(opened: dict[str, Client], where: str) -> Iterator[Row]:
    for work in (*SINGLE, *PAGES):
        competing = contenders(opened, work.operation)
        yield Row(f"{work.name}, {where}", competing, repeat=4, limits=_AHEAD, items=work.items)


def _store(transport: Transport) -> None:
    """Store the users that clients ask for.

    Not all clients know the shard of an item, so it has copies in the other shards, which are not in indexes.
    """
    entries = [user_item(number % SHARDS, number) for number in range(INDEX_SHARDS * (PAGE + 1))]
    copies = [
        user_item(shard, number) for number in range(PAGE + 1) for shard in range(SHARDS) if shard != number % SHARDS
    ]
    copies += [{**attached_item(), "PK": user_item(shard, 0)["PK"]} for shard in range(SHARDS)]
    unindexed = [{name: value for name, value in each.items() if not name.startswith("GSI")} for each in copies]
    items = [*entries, *unindexed]
    for at in range(0, len(items), BATCH):
        puts = [{"PutRequest": {"Item": item}} for item in items[at : at + BATCH]]
        transport.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
