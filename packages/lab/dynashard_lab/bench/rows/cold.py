"""Cold start: a fresh process, from the first import of a client to its first answered GET. CPU time and memory."""

from collections.abc import Iterator
from typing import Final

from dynashard_lab.bench.clients.interface import CLIENTS
from dynashard_lab.bench.contenders import installed
from dynashard_lab.bench.measure import Apart, Row
from dynashard_lab.bench.world import World, canned_process

_NAMES: Final = [name for name in CLIENTS if not (name.startswith("pydynox") and name.endswith("async"))]


def rows(world: World) -> Iterator[Row]:
    """Yield one row. The interpreter's own start is not included; the entity or model of a client is."""
    del world
    with canned_process() as url:
        contenders = [
            Apart(name, ["-m", "dynashard_lab.bench.apart", "cold", ":".join(CLIENTS[name]), url])
            for name in installed(_NAMES)
        ]
        yield Row("cold start: import, connect, get an item", contenders, repeat=1, items=1, rounds=9)
