"""What a plan is made for: sizes, rates, skew and growth, with their bounds."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from dynashard.placement import PLACEMENTS, is_power_of_two
from dynashard.schema import MAX_ITEM_BYTES, MAX_SHARDS
from dynashard_lab.plan.following import Derived
from dynashard_lab.plan.listing import ORDERS
from dynashard_lab.plan.skew import Skew
from dynashard_lab.plan.units import Consistency

MAX_RATE: Final = 100_000_000
MAX_ITEMS: Final = 1_000_000_000_000
_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "item_bytes": (1, MAX_ITEM_BYTES),
    "writes": (0, MAX_RATE),
    "reads": (0, MAX_RATE),
    "lists": (0, MAX_RATE),
    "page": (1, 1000),
    "transactional": (0, 1),
    "stored": (0, MAX_ITEMS),
    "load": (0, MAX_ITEMS),
    "growth": (-50, 100),
    "months": (0, 120),
    "fill": (0.1, 1),
    "mean": (0.01, 1),
    "utilization": (0.1, 1),
}


@dataclass(frozen=True, slots=True)
class IndexLoad:
    """An index under the workload.

    Attributes:
        share: the part of the items that the index holds.
        key_changes: the part of the writes that change an entry's key.
        hottest: the share of the index's hottest logical partition in its entries.
        assumed: why `hottest` is an upper bound; empty if it was given or measured.
        declared: the declared shard count; None for an index without shards.
        entry_bytes: what the index stores of an item; None if it stores all attributes, as the tables here do.
        rising: whether its sort keys rise with time.
        replica: whether it is a read replica, whose count follows the table's.
    """

    name: str
    share: float = 1.0
    key_changes: float = 0.0
    hottest: float = 1.0
    assumed: str = ""
    declared: int | None = None
    entry_bytes: int | None = None
    rising: bool = True
    replica: bool = False

    def __post_init__(self) -> None:
        for what in ("share", "key_changes", "hottest"):
            _require_between(f"{what} of index {self.name}", getattr(self, what), 0, 1)
        if self.entry_bytes is not None:
            _require_between(f"the entry of index {self.name}", self.entry_bytes, 1, MAX_ITEM_BYTES)


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload; rates are per second, at the peak, for all logical partitions together.

    Attributes:
        item_bytes: the mean stored size of an item, with names and keys.
        writes: creates, changes and deletes of single items.
        reads: reads of single items.
        lists: pages of listings.
        page, order: items a page, and the order of the listings.
        consistency: of all reads.
        transactional: the part of the writes that are in transactions.
        skew: how the traffic is spread over logical partitions.
        stored: items in the table.
        load: items to load once into one logical partition.
        growth: percent a month by which rates and items grow.
        months: how far to look ahead.
        placement: its name; decides whether counts are powers of two, and what a read by key costs.
        rising: whether sort keys rise with time.
        timed: whether sort keys begin with their time in a form by which epochs can place them; None if unknown.
        fill: the part of a partition's limits that a shard may use.
        mean: the mean load as a part of the peak.
        utilization: the target of provisioned capacity.
        declared: the declared shard count; None if there is no declaration, 0 if it has no shards.
        shards: the shard count to plan with; None for the smallest that suffices.
        name: the entity's, for advice.
        shares_with: other entities in the same logical partitions.
        derived: what is written besides each item that is written.
        queued: whether writes are accepted on a queue.

    Raises:
        ValueError: a value is out of its bounds; the message names it.
    """

    item_bytes: int
    skew: Skew
    writes: float = 0
    reads: float = 0
    lists: float = 0
    page: int = 50
    order: str = "round_robin"
    consistency: Consistency = Consistency.EVENTUAL
    transactional: float = 0
    stored: int = 0
    load: int = 0
    growth: float = 0
    months: int = 12
    placement: str = "calculated"
    rising: bool = True
    timed: bool | None = None
    fill: float = 0.7
    mean: float = 0.5
    utilization: float = 0.7
    declared: int | None = None
    shards: int | None = None
    name: str = ""
    shares_with: tuple[str, ...] = ()
    indexes: tuple[IndexLoad, ...] = field(default=())
    derived: tuple[Derived, ...] = ()
    queued: bool = False

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            _require_between(name, getattr(self, name), low, high)
        if self.order not in ORDERS:
            raise ValueError(f"order is {self.order!r}; it must be one of {', '.join(ORDERS)}")
        if self.placement not in PLACEMENTS:
            raise ValueError(f"placement is {self.placement!r}; it must be one of {', '.join(sorted(PLACEMENTS))}")
        if self.consistency is Consistency.TRANSACTIONAL and self.lists:
            raise ValueError("listings cannot be transactional: plan them apart, or choose another consistency")
        if self.declared is not None:
            _require_between("declared", self.declared, 0, MAX_SHARDS)
        if self.shards is not None:
            _require_between("shards", self.shards, 1, MAX_SHARDS)
            if PLACEMENTS[self.placement].powers_of_two and not is_power_of_two(self.shards):
                raise ValueError(f"shards is {self.shards}; {self.placement} placement needs a power of two")
        if not (self.writes or self.reads or self.lists or self.stored or self.load):
            raise ValueError("there is nothing to plan: give --writes, --reads, --lists, --stored or --load")


def _require_between(name: str, value: float, low: float, high: float) -> None:
    if not isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name} is {value:,.15g}; it must be between {low:,.15g} and {high:,.15g}")
