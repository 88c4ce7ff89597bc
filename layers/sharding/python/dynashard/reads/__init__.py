"""Listings: round-robin, ordered, shard by shard, in parallel; over the table and its indexes."""

# ruff: noqa: PLC0415 - calls for single items need none of this

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynashard.reads.allowance import allowing
    from dynashard.reads.cursor import CursorCodec
    from dynashard.reads.filters import Filter
    from dynashard.reads.listing import Listing, ShardLoad
    from dynashard.reads.page import Page
    from dynashard.reads.query import Budget, Order, Partitions, Query, QueryArguments
    from dynashard.reads.results import Counted, Scan
    from dynashard.reads.selection import index_of, narrowed, query_of, sort_range

__all__ = [
    "Budget",
    "Counted",
    "CursorCodec",
    "Filter",
    "Listing",
    "Order",
    "Page",
    "Partitions",
    "Query",
    "QueryArguments",
    "Scan",
    "ShardLoad",
    "allowing",
    "index_of",
    "narrowed",
    "query_of",
    "sort_range",
]


def _parts() -> Iterator[ModuleType]:
    """Load the modules that have these names, one after another: each imports those before it."""
    from dynashard.reads import allowance

    yield allowance
    from dynashard.reads import cursor

    yield cursor
    from dynashard.reads import filters

    yield filters
    from dynashard.reads import page

    yield page
    from dynashard.reads import query

    yield query
    from dynashard.reads import results

    yield results
    from dynashard.reads import selection

    yield selection
    from dynashard.reads import listing

    yield listing


def __getattr__(name: str) -> object:
    for part in _parts() if name in __all__ else ():
        if hasattr(part, name):
            return globals().setdefault(name, getattr(part, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
