"""The shard count that a logical partition needs, with its reason."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from dynashard.schema import MAX_SHARDS
from dynashard_lab.plan.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS


class Need(StrEnum):
    """Whether shards are needed."""

    NONE = "none"
    """One partition serves the hottest key."""
    OPTIONAL = "optional"
    """DynamoDB splits the hot key range by itself; shards avoid the throttles before it has."""
    REQUIRED = "required"
    """Writes need shards, and sort keys rise, so DynamoDB does not split the range."""
    UNREACHABLE = "unreachable"
    """No allowed count is enough."""


@dataclass(frozen=True, slots=True)
class ShardCount:
    """A shard count and where it comes from.

    Attributes:
        count: the smallest count that suffices; the largest allowed one if none does.
        writes, reads: units a second of the hottest partition, at this count.
        by_writes: the shards that the writes need, before rounding to a power of two.
        reason: one sentence.
    """

    count: int
    need: Need
    writes: float
    reads: float
    by_writes: int
    reason: str


def shard_count(
    writes: float, reads_per_shard: Callable[[int], float], *, fill: float, powers: bool, rising: bool
) -> ShardCount:
    """Return the smallest count whose shards stay below the limits of a partition.

    Args:
        writes: write units a second of the hottest logical partition.
        reads_per_shard: from a count to the read units a second of each of its shards.
        fill: the part of a partition's limits that a shard may use, above 0 and at most 1. The rest is for uneven
            hashes, and for keys that share the partition.
        powers: whether the placement needs a power of two.
        rising: whether sort keys rise with time, so that all writes are at one end of the range.
    """
    write_limit, read_limit = PARTITION_WRITE_UNITS * fill, PARTITION_READ_UNITS * fill
    by_writes = max(1, ceil(writes / write_limit))
    fitting = (n for n in counts(powers=powers) if writes / n <= write_limit and reads_per_shard(n) <= read_limit)
    count = next(fitting, None)
    reads = reads_per_shard(count or MAX_SHARDS) * (count or MAX_SHARDS)
    if count is None:
        reason = f"{MAX_SHARDS} shards are not enough for {_demand(writes, reads)}"
        return ShardCount(MAX_SHARDS, Need.UNREACHABLE, writes, reads, by_writes, reason)
    if count == 1:
        reason = f"{_demand(writes, reads)} fit into one partition, {_limits(fill)}"
        return ShardCount(1, Need.NONE, writes, reads, by_writes, reason)
    need = Need.REQUIRED if rising and by_writes > 1 else Need.OPTIONAL
    return ShardCount(
        count, need, writes, reads, by_writes, _reason(count, writes, reads, by_writes, fill, powers=powers)
    )


def counts(*, powers: bool) -> list[int]:
    """Return the allowed counts, smallest first."""
    return [1 << bit for bit in range(MAX_SHARDS.bit_length())] if powers else list(range(1, MAX_SHARDS + 1))


def _reason(count: int, writes: float, reads: float, by_writes: int, fill: float, *, powers: bool) -> str:
    text = f"{_demand(writes, reads)}; a partition serves {_limits(fill)}"
    if by_writes <= 1:
        return f"{text}; reads need {count} shards"
    text += f": writes need {by_writes} shards"
    if powers and 1 << (by_writes - 1).bit_length() == count:
        return text if by_writes == count else f"{text}, and the placement a power of two: {count}"
    return text if by_writes == count else f"{text}, reads {count}"


def _demand(writes: float, reads: float) -> str:
    return f"the hottest partition's {writes:,.0f} write and {reads:,.0f} read units/s"


def _limits(fill: float) -> str:
    return f"{PARTITION_WRITE_UNITS:,} and {PARTITION_READ_UNITS:,}, planned at {fill:.0%}"
