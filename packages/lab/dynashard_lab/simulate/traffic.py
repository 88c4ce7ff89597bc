"""From the demands of a scenario to requests: which stored keys they meet, by the layer's own placement."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Final

from dynashard.entity import ItemKey
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.placement import CALCULATED, UNSHARDED
from dynashard.routing import hash_of, shard_keys
from dynashard_lab.plan.units import Consistency, read_units, write_units
from dynashard_lab.simulate.model import TABLE, Access, TableModel
from dynashard_lab.simulate.scenario import DemandSpec, Scenario
from dynashard_lab.simulate.settings import Settings
from dynashard_lab.simulate.throttle import Throttle

_PLACED: Final = 1 << 16
"""Items that are placed to find the share of each shard, of a demand that has no number of items."""
_SPREAD: Final = 64
"""Random sort keys that stand for the requests of a tick."""

StoredKeys = tuple[str, ...]
"""The stored partition keys of an item: in the table, then in each index that it is in."""


class Flow:
    """Requests of one demand that meet the same stored partition keys.

    Attributes:
        name: of the demand.
        share: of its requests.
        left: how many items are still to be written, None if there is no end.
    """

    __slots__ = ("_accesses", "_owed", "_random", "_sorts_rise", "left", "name", "share")

    def __init__(
        self, name: str, accesses: list[Access], *, share: float, left: int | None, random: Random, sorts_rise: bool
    ) -> None:
        self.name = name
        self.share = share
        self.left = left
        self._random = random
        self._owed = 0.0
        self._sorts_rise = sorts_rise
        self._accesses = accesses

    def due(self, requests: float) -> int:
        """Return the whole requests among these and what earlier calls left of a request."""
        whole = int(self._owed + requests)
        self._owed += requests - whole
        return whole if self.left is None else min(whole, self.left)

    def ask(
        self, model: TableModel, now: float, count: int, *, stored: bool
    ) -> Iterator[tuple[int, int, Throttle | None]]:
        """Send requests to a model in parts; yield the size of each part, how many were admitted, and the throttle.

        Without `stored` they overwrite what is there, so the table does not grow.
        """
        parts = min(count, 1 if self._sorts_rise else _SPREAD)
        for part in range(parts):
            many = count * (part + 1) // parts - count * part // parts
            sort = f"{now:020.6f}" if self._sorts_rise else f"{self._random.getrandbits(64):016x}"
            accesses = [each._replace(sort_key=sort, size=each.size if stored else 0.0) for each in self._accesses]
            admitted, throttle = model.admit_many(now, many, accesses)
            if self.left is not None and stored:
                self.left -= admitted
            yield many, admitted, throttle


def flows(scenario: Scenario) -> list[Flow]:
    """Return the flows of all demands."""
    random = Random(scenario.settings.seed)
    return [flow for name in scenario.demands for flow in _flows(name, scenario, random)]


def units_of(demand: DemandSpec, settings: Settings) -> float:
    """Return the units of a request."""
    factor = settings.transaction_factor if demand.transactional else 1.0
    if demand.operation == "write":
        return write_units(demand.item_bytes) * factor
    strong = demand.consistent or demand.transactional
    return read_units(demand.item_bytes, Consistency.STRONG if strong else Consistency.EVENTUAL) * factor


def mean_units(demand: DemandSpec, settings: Settings) -> tuple[float, float]:
    """Return the write units and the read units of an operation through the layer, in the mean of its shares.

    A page costs what its items cost in one Query.
    """
    strong = Consistency.STRONG if demand.consistent else Consistency.EVENTUAL
    writes = units_of(demand, settings) * demand.share_of("create", "update", "put")
    items = read_units(demand.item_bytes, strong) * demand.share_of("get")
    return writes, items + read_units(demand.item_bytes * demand.page, strong) * demand.share_of("list")


def _flows(name: str, scenario: Scenario, random: Random) -> Iterator[Flow]:
    demand = scenario.demands[name]
    counts = place(demand, demand.items or _PLACED, random)
    reading, units, indexes = demand.operation == "read", units_of(demand, scenario.settings), (TABLE, *demand.entries)
    size = 0.0 if reading else float(demand.item_bytes)
    for keys, count in counts.items():
        accesses = [Access(key, "", units, reading, index, size) for key, index in zip(keys, indexes, strict=True)]
        left = None if demand.items is None else count
        share = count / counts.total()
        yield Flow(name, accesses, share=share, left=left, random=random, sorts_rise=demand.sort == "rising")


def place(demand: DemandSpec, count: int, random: Random) -> Counter[StoredKeys]:
    """Return how many of `count` items get each combination of stored partition keys.

    Cost: a microsecond an item, unless all keys are the same.
    """
    logical = _logical_partitions(demand)
    if len(logical) == 1 and demand.shards <= 1 and all(entry.shards <= 1 for entry in demand.entries.values()):
        return Counter({_stored(demand, logical[0], 0): count})
    cumulative = list(accumulate(1.0 / (rank**demand.skew) for rank in range(1, len(logical) + 1)))
    chosen = random.choices(logical, cum_weights=cumulative, k=count)
    # A shard under any count is given by the lowest bits of the shard under the largest one.
    most = max(demand.shards, 1, *(entry.shards for entry in demand.entries.values()))
    hashes = Counter(
        (partition, CALCULATED.shard(hash_of(CALCULATED, ItemKey(partition, f"{number:027d}")), most))
        for number, partition in enumerate(chosen)
    )
    counts: Counter[StoredKeys] = Counter()
    for (partition, hashed), many in hashes.items():
        counts[_stored(demand, partition, hashed)] += many
    return counts


def _logical_partitions(demand: DemandSpec) -> list[str]:
    if demand.partitions == 1:
        return [demand.partition]
    return [f"{demand.partition}{number}" for number in range(demand.partitions)]


def _stored(demand: DemandSpec, partition: str, hashed: int) -> StoredKeys:
    entries = demand.entries.values()
    return (_key(partition, hashed, demand.shards), *(_key(each.partition, hashed, each.shards) for each in entries))


def _key(partition: str, hashed: int, count: int) -> str:
    shard = 0 if count == UNSHARDED else CALCULATED.shard(hashed, count)
    return shard_keys(CALCULATED, partition, DEFAULT_SEPARATOR, count)[shard]
