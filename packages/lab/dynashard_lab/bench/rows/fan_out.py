"""Fan-out: all items of 16 and of 64 shards at the same time, from a server that answers after 0 or 5 ms.

The local engine works on one query at a time, so this is measured on the canned server.
"""

from collections.abc import Iterator
from itertools import product

from dynashard_lab.bench.clients.interface import DIRECT
from dynashard_lab.bench.contenders import clients, contenders
from dynashard_lab.bench.measure import Clock, Limit, Row
from dynashard_lab.bench.processors import available
from dynashard_lab.bench.stored import PAGE
from dynashard_lab.bench.world import World, canned_process


def rows(world: World) -> Iterator[Row]:
    """Yield a row for each number of shards, delay and number of processors. Clients that wait use 16 threads."""
    del world
    for shards, delay_ms in product((16, 64), (0, 5)):
        with canned_process(shards=shards, delay_ms=delay_ms) as url, clients(url, shards=shards) as opened:
            for count in sorted({1, min(2, available())}):
                clock: Clock = "wall" if delay_ms else "cpu"
                processors = "1 processor" if count == 1 else f"{count} processors"
                limits = {DIRECT: Limit(0.15 if delay_ms else 0.09)} if count == 1 else {}
                yield Row(
                    f"{shards} shards of {PAGE} items, server after {delay_ms} ms, {processors}",
                    contenders(opened, "fan_out"),
                    repeat=1,
                    clock=clock,
                    limits=limits,
                    items=shards * PAGE,
                    processors=count,
                    rounds=7,
                )
