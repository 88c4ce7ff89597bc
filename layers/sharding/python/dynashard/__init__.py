"""Dynashard's sharding layer: declare an entity and its shards, get CRUD and listings over all of them.

The names below are loaded on first use, so that `dynashard.schema`, which the CDK stacks read, costs nothing more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dynashard.changes import Change, Consumer
    from dynashard.copies import Copies
    from dynashard.counters import Counters, CounterStore
    from dynashard.edges import COUNT_KEY, EDGE_KEY, Added, Edge, EdgeCount, Edges, EdgeStore, newest
    from dynashard.entity import (
        Detached,
        Entity,
        EntityDefinition,
        Index,
        Key,
        Registry,
        Shards,
        created_at,
        definition,
        new_id,
        updated_at,
    )
    from dynashard.errors import DeclarationError
    from dynashard.reads import Budget, Filter, Order, Page
    from dynashard.repository import Check, Create, Delete, Put, RetryPolicy, Step, Update, Written
    from dynashard.rollups import Level, RollUps, divide
    from dynashard.service import Collection, Dynashard
    from dynashard.topology import LeasedTopology, declared_counts

_ROOMS: Final = (
    "dynashard.errors",
    "dynashard.counters",
    "dynashard.edges",
    "dynashard.entity",
    "dynashard.reads",
    "dynashard.repository",
    "dynashard.service",
    "dynashard.topology",
    "dynashard.rollups",
    "dynashard.changes",
    "dynashard.copies",
)

__all__ = [
    "COUNT_KEY",
    "EDGE_KEY",
    "Added",
    "Budget",
    "Change",
    "Check",
    "Collection",
    "Consumer",
    "Copies",
    "CounterStore",
    "Counters",
    "Create",
    "DeclarationError",
    "Delete",
    "Detached",
    "Dynashard",
    "Edge",
    "EdgeCount",
    "EdgeStore",
    "Edges",
    "Entity",
    "EntityDefinition",
    "Filter",
    "Index",
    "Key",
    "LeasedTopology",
    "Level",
    "Order",
    "Page",
    "Put",
    "Registry",
    "RetryPolicy",
    "RollUps",
    "Shards",
    "Step",
    "Update",
    "Written",
    "created_at",
    "declared_counts",
    "definition",
    "divide",
    "new_id",
    "newest",
    "updated_at",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in map(import_module, _ROOMS):
            if name in getattr(room, "__all__", vars(room)):
                return globals().setdefault(name, getattr(room, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
