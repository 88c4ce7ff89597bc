"""The speed of the simulator's model: how much CPU it takes to decide about one request in virtual time."""

import statistics
import time
from collections.abc import Iterator
from typing import Final

from bench.measure import Fact
from bench.world import World
from tools.simulate.model import Access
from tools.simulate.run import build
from tools.simulate.scenario import load

RUNS: Final = 5
OPERATIONS: Final = 200_000
KEYS: Final = tuple(f"user.v1.User:hot:{shard}" for shard in range(64))
LIMIT_US: Final = 5.0
"""200,000 decisions a second on one core."""


def rows(world: World) -> Iterator[Fact]:
    """Yield the median microseconds of CPU for a write, one by one, below and above what the table can take."""
    del world
    for name, rate in (("a write, few throttled", 20_000), ("a write, most throttled", 200_000)):
        taken = statistics.median(_microseconds(rate) for _ in range(RUNS))
        yield Fact("simulator", name, round(taken, 2), "us", LIMIT_US)


def _microseconds(rate: int) -> float:
    model = build(load("hot-tenant")["64 shards"])
    started = time.process_time()
    for number in range(OPERATIONS):
        model.admit(number / rate, Access(KEYS[number % 64], "2zN", 1.0, size=1_024.0))
    return (time.process_time() - started) / OPERATIONS * 1e6
