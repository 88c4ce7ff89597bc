"""Read all items of the canned server, and print the cost: `python -m bench.scan_process layer URL`."""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.peer import peer_model
from bench.users import SHARDS, TENANT, User
from bench.world import TABLE, World


def _layer(world: World) -> Iterator[Any]:
    return world.db(world.transport()).collection(User).scan({"tenant_id": TENANT})


def _botocore(world: World) -> Iterator[Any]:
    paginator = world.raw().get_paginator("query")
    for shard in range(SHARDS):
        for page in paginator.paginate(
            TableName=TABLE,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": f"user.v1.User:{TENANT}:{shard}"}},
        ):
            yield from page["Items"]


def _pynamodb(world: World) -> Iterator[Any]:
    model = peer_model(world)
    for shard in range(SHARDS):
        yield from model.query(f"user.v1.User:{TENANT}:{shard}")


CONTENDERS: Final[Mapping[str, Callable[[World], Iterator[Any]]]] = {
    "layer": _layer,
    "botocore": _botocore,
    "pynamodb": _pynamodb,
}


def main() -> None:
    """Read with one contender and print the cost as JSON."""
    contender, url = sys.argv[1:]
    started = time.perf_counter()
    items = sum(1 for _ in CONTENDERS[contender](World(url, url)))
    seconds = time.perf_counter() - started
    figures = {"items": items, "megabytes": round(_peak(), 1), "items_per_second": round(items / seconds)}
    print(json.dumps(figures))


def _peak() -> float:
    """Return the highest resident memory, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, ru_maxrss includes the process that started this one.
        return next(int(line.split()[1]) for line in status.open() if line.startswith("VmHWM")) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
