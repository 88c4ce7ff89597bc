"""The speed of the simulator: the CPU of a decision of its model, and of an operation through the real layer."""

import statistics
import time
from collections.abc import Iterator
from typing import Final

from dynashard_lab.bench.measure import Fact
from dynashard_lab.bench.world import World
from dynashard_lab.simulate.layer.run import run_layer
from dynashard_lab.simulate.model import Access
from dynashard_lab.simulate.run import build
from dynashard_lab.simulate.scenario import LayerSpec, load

RUNS: Final = 5
OPERATIONS: Final = 200_000
SEPARATE: Final = "64 shards, each with a partition of its own"
KEYS: Final = tuple(f"user.v1.User:hot:{shard}" for shard in range(64))
LIMIT_US: Final = 5.0
"""200,000 decisions a second on one core."""
LAYER_LIMIT_US: Final = 200.0
"""5,000 operations a second through the layer on one core."""
_CREATES: Final = ("seconds=25", "rehearsal_seconds=0", "demands.tenant.rate=200")
_THROTTLED: Final = ("seconds=5", "rehearsal_seconds=0")
_LOAD: Final = ("rehearsal_seconds=0", "demands.users.items=10000")


def rows(world: World) -> Iterator[Fact]:
    """Yield the median microseconds of CPU for a write, below and above what the table can take.

    Through the layer, an operation is one that a caller makes, whatever becomes of it: its retries are part of it. An
    item of a load counts once it is written, however often it was sent.
    """
    del world
    for name, rate in (("a write, few throttled", 20_000), ("a write, most throttled", 200_000)):
        taken = statistics.median(_microseconds(rate) for _ in range(RUNS))
        yield Fact("simulator", name, round(taken, 2), "us", LIMIT_US)
    for name, scenario, variant, changes in (
        ("a create through the layer", "layer-hot-tenant", "64 shards", _CREATES),
        ("a create through the layer, most throttled", "layer-hot-tenant", "1 shard", _THROTTLED),
        ("an item of a batch through the layer", "layer-bulk-load", SEPARATE, _LOAD),
    ):
        taken = statistics.median(_layer_microseconds(scenario, variant, changes) for _ in range(RUNS))
        yield Fact("simulator", name, round(taken, 1), "us", LAYER_LIMIT_US)


def _microseconds(rate: int) -> float:
    model = build(load("hot-tenant")["64 shards"])
    started = time.process_time()
    for number in range(OPERATIONS):
        model.admit(number / rate, Access(KEYS[number % 64], "2zN", 1.0, size=1_024.0))
    return (time.process_time() - started) / OPERATIONS * 1e6


def _layer_microseconds(name: str, variant: str, changes: tuple[str, ...]) -> float:
    """Return the CPU of an operation of a scenario's variant."""
    scenario = load(name, changes)[variant]
    result = run_layer(scenario, scenario.layer or LayerSpec())
    loading = any(demand.items for demand in scenario.demands.values())
    operations = result.admitted if loading else result.asked
    return (result.layer.real_seconds if result.layer else 0.0) / operations * 1e6
