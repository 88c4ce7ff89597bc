"""Listings: round-robin, ordered, shard by shard, in parallel; over the table and its indexes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dynashard.reads.allowance import allowing
    from dynashard.reads.cursor import CursorCodec
    from dynashard.reads.filters import Filter
    from dynashard.reads.listing import Listing, ShardLoad
    from dynashard.reads.page import Page
    from dynashard.reads.query import Budget, Order, Partitions, Query, QueryArguments
    from dynashard.reads.results import Counted, Scan
    from dynashard.reads.selection import index_of, query_of, sort_range

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
    "query_of",
    "sort_range",
]


_PARTS: Final = ("allowance", "cursor", "filters", "page", "query", "results", "selection", "listing")


def __getattr__(name: str) -> Any:
    # Single items need none of this. Each module imports those before it, so looking for a name loads nothing in vain.
    for part in _PARTS if name in __all__ else ():
        module = import_module(f"{__name__}.{part}")
        if hasattr(module, name):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
