"""How long it takes to write many items into one logical partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dynashard_lab.plan.limits import (
    DOUBLING_SECONDS,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_WRITE_UNITS,
    PEAK_FACTOR,
    TABLE_QUOTA_UNITS,
)
from dynashard_lab.plan.partitions import expected_occupied

_MINUTE: Final = 60
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Target:
    """The table, or an index of it, as the target of a load.

    Attributes:
        units: write units that an item costs there, in its hottest logical partition.
        shards: the shards of that partition.
    """

    name: str
    units: float
    shards: int


@dataclass(frozen=True, slots=True)
class LoadTime:
    """Seconds for a load.

    Attributes:
        naive: with one shard in the table and in each index.
        cold: with all shards, into a new on-demand table that doubles every 30 minutes.
        warm: with all shards, into a table and indexes that serve `warm_units` each from the start.
        bottleneck: the slowest target of the warm load.
    """

    items: int
    naive: float
    cold: float
    warm: float
    warm_units: int
    bottleneck: str


def load_time(items: int, targets: Sequence[Target], *, warm_units: int = TABLE_QUOTA_UNITS) -> LoadTime:
    """Return how long `items` take, if the writer is fast enough. The slowest of the targets decides.

    An index that cannot follow throttles the table. Shards that share a physical partition share its 1,000 units: the
    expected number of partitions with a shard counts. Burst capacity and splits for heat make a load faster, and do not
    count.
    """
    warm = {each.name: seconds_at(items * each.units, rate(each.shards, warm_units)) for each in targets}
    return LoadTime(
        items=items,
        naive=max(seconds_at(items * each.units, PARTITION_WRITE_UNITS) for each in targets),
        cold=max(seconds_cold(items * each.units, each.shards) for each in targets),
        warm=max(warm.values()),
        warm_units=warm_units,
        bottleneck=max(warm, key=warm.__getitem__),
    )


def seconds_at(units: float, units_per_second: float) -> float:
    """Return the seconds for some units at a constant rate."""
    return units / units_per_second


def rate(shards: int, table_units: float) -> float:
    """Return the write units a second that the shards of one logical partition get from a table's partitions."""
    partitions = max(1, round(table_units / PARTITION_WRITE_UNITS))
    return min(table_units, expected_occupied(shards, partitions) * PARTITION_WRITE_UNITS)


def seconds_cold(units: float, shards: int) -> float:
    """Return the seconds for some units in a new on-demand table, whose capacity doubles up to the default quota."""
    table, begun = float(NEW_TABLE_WRITE_UNITS), 0.0
    while True:
        each = rate(shards, table)
        if table >= TABLE_QUOTA_UNITS or units <= each * DOUBLING_SECONDS:
            return begun + units / each
        units -= each * DOUBLING_SECONDS
        begun += DOUBLING_SECONDS
        table = min(table * PEAK_FACTOR, TABLE_QUOTA_UNITS)


def duration(seconds: float) -> str:
    """Return seconds in a unit that a person uses."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.1f} minutes"
    return f"{seconds / _HOUR:,.1f} hours"
