"""What one page of a listing reads in each order, at a shard count."""

from dataclasses import dataclass
from typing import Final

from dynashard.reads.first_round import first_limit
from dynashard_lab.plan.units import Consistency, query_units

QUERY_BYTES: Final = 1024 * 1024
"""A Query reads at most 1 MB. Source: Developer Guide, Query.Pagination; not read again in 2026."""
ORDERS: Final = ("round_robin", "ordered", "shard")


@dataclass(frozen=True, slots=True)
class PageCost:
    """The cost of one page.

    Attributes:
        queries: Queries that are sent.
        read_units: their units together.
        shard_units: units of the busiest shard.
        shards_read: shards that a page reads.
    """

    order: str
    queries: int
    read_units: float
    shard_units: float
    shards_read: int


def page_cost(
    order: str, *, items: int, item_bytes: int, shards: int, consistency: Consistency = Consistency.EVENTUAL
) -> PageCost:
    """Return the cost of a page of `items` in one of `ORDERS`.

    Round-robin and shard order read one shard if it fills the page. An ordered page reads all shards, each for its
    share as the layer's first round does; the second round adds a few percent, and is not counted.
    """
    if order != "ordered":
        size = items * item_bytes
        units = query_units(size, consistency)
        return PageCost(order, _queries(size), units, units, 1)
    size = first_limit(items, shards, item_bytes) * item_bytes
    units = query_units(size, consistency)
    return PageCost(order, shards * _queries(size), shards * units, units, shards)


def high_watermark_units(
    *, items: int, item_bytes: int, shards: int, consistency: Consistency = Consistency.EVENTUAL
) -> float:
    """Return the units of a page by the published algorithm, which reads a whole page from each shard."""
    return shards * query_units(items * item_bytes, consistency)


def _queries(size: int) -> int:
    return max(1, -(-size // QUERY_BYTES))
