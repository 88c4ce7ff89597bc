"""The speed of the simulator: the CPU of a decision of its model, and of an operation through the real layer."""

import statistics
import time
from collections.abc import Iterator
from typing import Final

from bench.measure import Fact
from bench.world import World
from tools.simulate.layer.run import run_layer
from tools.simulate.model import Access
from tools.simulate.run import build
from tools.simulate.scenario import LayerSpec, load

RUNS: Final = 5
OPERATIONS: Final = 200_000
KEYS: Final = tuple(f"user.v1.User:hot:{shard}" for shard in range(64))
LIMIT_US: Final = 5.0
"""200,000 decisions a second on one core."""
LAYER_LIMIT_US: Final = 200.0
"""5,000 operations a second through the layer on one core."""
_CREATES: Final = ("seconds=25", "rehearsal_seconds=0", "demands.tenant.rate=200")
_LOAD: Final = ("rehearsal_seconds=0", "demands.users.items=10000")


def rows(world: World) -> Iterator[Fact]:
    """Yield the median microseconds of CPU for a write, below and above what the table can take."""
    del world
    for name, rate in (("a write, few throttled", 20_000), ("a write, most throttled", 200_000)):
        taken = statistics.median(_microseconds(rate) for _ in range(RUNS))
        yield Fact("simulator", name, round(taken, 2), "us", LIMIT_US)
    for name, scenario, changes in (
        ("a create through the layer", "layer-hot-tenant", _CREATES),
        ("an item of a batch through the layer", "layer-bulk-load", _LOAD),
    ):
        taken = statistics.median(_layer_microseconds(scenario, changes) for _ in range(RUNS))
        yield Fact("simulator", name, round(taken, 1), "us", LAYER_LIMIT_US)


def _microseconds(rate: int) -> float:
    model = build(load("hot-tenant")["64 shards"])
    started = time.process_time()
    for number in range(OPERATIONS):
        model.admit(number / rate, Access(KEYS[number % 64], "2zN", 1.0, size=1_024.0))
    return (time.process_time() - started) / OPERATIONS * 1e6


def _layer_microseconds(name: str, changes: tuple[str, ...]) -> float:
    """Return the CPU of an operation of the last variant of a scenario, which has the most shards."""
    scenario = list(load(name, changes).values())[-1]
    result = run_layer(scenario, scenario.layer or LayerSpec())
    return (result.layer.real_seconds if result.layer else 0.0) / result.admitted * 1e6
