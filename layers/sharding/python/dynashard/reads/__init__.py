"""Listings: round-robin, ordered, shard by shard, in parallel; over the table and its indexes."""

from dynashard.reads.allowance import allowing
from dynashard.reads.cursor import CursorCodec
from dynashard.reads.filters import Filter
from dynashard.reads.listing import Listing, ShardLoad
from dynashard.reads.query import Budget, Order, Page, Partitions, Query, QueryArguments

__all__ = [
    "Budget",
    "CursorCodec",
    "Filter",
    "Listing",
    "Order",
    "Page",
    "Partitions",
    "Query",
    "QueryArguments",
    "ShardLoad",
    "allowing",
]
