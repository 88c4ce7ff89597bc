"""Memory and speed of reading 200,000 items from the canned server, each contender in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from bench.measure import Fact
from bench.users import SHARDS
from bench.world import World, canned_process

ITEMS: Final = 200_000
LIMITS: Final = {"layer": 200.0}


def rows(world: World) -> Iterator[Fact]:
    """Yield resident memory and items per second of the layer's scan, and of peers that read shard after shard."""
    del world
    with canned_process(per_shard=ITEMS // SHARDS) as url:
        for contender in ("layer", "botocore", "pynamodb"):
            done = subprocess.run(  # noqa: S603 - this checkout's own module
                [sys.executable, "-m", "bench.scan_process", contender, url],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            figures = json.loads(done.stdout)
            if figures["items"] != ITEMS:
                raise ValueError(f"{contender} read {figures['items']} of {ITEMS} items")
            subject = f"scan of {ITEMS:,}, {contender}"
            yield Fact(subject, "resident memory at its highest", figures["megabytes"], "MB", LIMITS.get(contender))
            yield Fact(subject, "speed", figures["items_per_second"], "items/s")
