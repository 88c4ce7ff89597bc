"""Physical partitions: how many a table has, what each of them serves, and the chance that hot keys share one."""

from fractions import Fraction
from math import ceil, exp, expm1, lgamma, log, log1p, log2

from dynashard_lab.plan.limits import (
    DOUBLING_SECONDS,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_BYTES,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    PEAK_FACTOR,
)


def provisioned_partitions(read_units: float, write_units: float, total_bytes: int = 0) -> int:
    """Return how many partitions a provisioned table is created with: `RCU / 3,000 + WCU / 1,000`, rounded up.

    Its bytes may need more. Source: the formula of the developer guide until 2018, as the Codeship article quotes it.
    AWS no longer documents it.
    """
    exact = Fraction(read_units) / PARTITION_READ_UNITS + Fraction(write_units) / PARTITION_WRITE_UNITS
    return max(1, ceil(exact), _by_size(total_bytes))


def on_demand_partitions(read_units: float, write_units: float, total_bytes: int = 0) -> int:
    """Return how many partitions an on-demand table needs. A partition serves its reads in addition to its writes.

    A new table has 4, for 12,000 reads and 4,000 writes a second. Source: the Ready Five article.
    """
    new = NEW_TABLE_WRITE_UNITS // PARTITION_WRITE_UNITS
    by_units = max(
        ceil(Fraction(read_units) / PARTITION_READ_UNITS), ceil(Fraction(write_units) / PARTITION_WRITE_UNITS)
    )
    return max(new, by_units, _by_size(total_bytes))


def _by_size(total_bytes: int) -> int:
    return -(-total_bytes // PARTITION_BYTES)


def even_share(units: float, partitions: int) -> float:
    """Return what each partition serves if units are divided evenly, as DynamoDB did before adaptive capacity."""
    return units / partitions


def doublings(target_units: float, ready_units: float) -> int:
    """Return how often an on-demand table must double before it serves `target_units`, a step within 30 minutes."""
    return max(0, ceil(log2(target_units / ready_units) / log2(PEAK_FACTOR))) if target_units > 0 else 0


def ramp_seconds(target_units: float, ready_units: float) -> int:
    """Return how long the traffic of an on-demand table should take to grow to `target_units`."""
    return doublings(target_units, ready_units) * DOUBLING_SECONDS


def chance_shared(keys: int, partitions: int) -> float:
    """Return the chance that at least two of `keys` hot keys are on one of `partitions` (the birthday problem).

    DynamoDB hashes partition keys, so each key is on each partition with equal chance. Splits for heat part such keys
    later.
    """
    if keys < 2:  # noqa: PLR2004 - two keys can share
        return 0.0
    if keys > partitions:
        return 1.0
    return -expm1(sum(log1p(-number / partitions) for number in range(keys)))


def expected_occupied(keys: int, partitions: int) -> float:
    """Return how many of `partitions` are expected to hold at least one of `keys` keys."""
    if partitions == 1:
        return float(min(keys, 1))
    return -partitions * expm1(keys * log1p(-1 / partitions))


def expected_served(keys: int, partitions: int, units_each: float, limit: float = PARTITION_WRITE_UNITS) -> float:
    """Return the units a second that keys with `units_each` are expected to get, before any split for heat.

    A partition with n of the keys serves the smaller of `n * units_each` and `limit`; n is binomial.
    """
    if keys == 0 or units_each <= 0:
        return 0.0
    if partitions == 1:
        return min(keys * units_each, limit)
    most = min(keys, int(limit / units_each))
    # Partitions with more keys than `most` serve the limit; the others leave a part of it unused.
    unused = sum(_binomial(keys, number, 1 / partitions) * (limit - number * units_each) for number in range(most + 1))
    return partitions * (limit - unused)


def _binomial(trials: int, successes: int, chance: float) -> float:
    ways = lgamma(trials + 1) - lgamma(successes + 1) - lgamma(trials - successes + 1)
    return exp(ways + successes * log(chance) + (trials - successes) * log1p(-chance))
