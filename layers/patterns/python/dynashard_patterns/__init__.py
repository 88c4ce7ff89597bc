"""Patterns on top of the sharding layer: data that follows from items, and data that is stored beside them.

Change data capture, materialized copies, roll-ups, edges, counters and attachments. Each name is loaded on first use,
so that a declaration does not load what only a stream consumer needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dynashard_patterns.attachments import Attachment
    from dynashard_patterns.changes import Change, Consumer
    from dynashard_patterns.copies import MaterializedCopies
    from dynashard_patterns.counters import Counters, CounterStore
    from dynashard_patterns.edges import (
        COUNT_KEY,
        EDGE_KEY,
        Added,
        Edge,
        EdgeCount,
        EdgeRepair,
        Edges,
        EdgeStore,
        newest,
    )
    from dynashard_patterns.rollups import Level, RollUps, divide

_MODULES: Final = {
    "attachments": ("Attachment",),
    "changes": ("Change", "Consumer"),
    "copies": ("MaterializedCopies",),
    "counters": ("Counters", "CounterStore"),
    "edges": ("COUNT_KEY", "EDGE_KEY", "Added", "Edge", "EdgeCount", "EdgeRepair", "EdgeStore", "Edges", "newest"),
    "rollups": ("Level", "RollUps", "divide"),
}
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "COUNT_KEY",
    "EDGE_KEY",
    "Added",
    "Attachment",
    "Change",
    "Consumer",
    "CounterStore",
    "Counters",
    "Edge",
    "EdgeCount",
    "EdgeRepair",
    "EdgeStore",
    "Edges",
    "Level",
    "MaterializedCopies",
    "RollUps",
    "divide",
    "newest",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return globals().setdefault(name, getattr(import_module(f"{__name__}.{_HOMES[name]}"), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
