"""Reading 200,000 items: memory and speed, each contender in a process of its own, from the canned server."""

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
    """Resident memory and items a second of the layer's scan, and of botocore reading shard after shard."""
    del world
    with canned_process(per_shard=ITEMS // SHARDS) as url:
        for contender in ("layer", "botocore", "pynamodb"):
            done = subprocess.run(  # noqa: S603 - this checkout's own module
                [sys.executable, "-m", "bench.scan_process", contender, url],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            told = json.loads(done.stdout)
            if told["items"] != ITEMS:
                raise ValueError(f"{contender} read {told['items']} of {ITEMS} items")
            subject = f"scan of {ITEMS:,}, {contender}"
            yield Fact(subject, "resident memory at its highest", told["megabytes"], "MB", LIMITS.get(contender))
            yield Fact(subject, "speed", told["items_per_second"], "items/s")
