"""Dynashard's sharding layer: declare an entity and its shards, get CRUD and listings over all of them.

The names below are loaded on first use, so that `dynashard.schema`, which the CDK stacks read, costs nothing more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dynashard.entity import (
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
    from dynashard.service import Collection, Dynashard
    from dynashard.topology import LeasedTopology, declared_counts

_ROOMS: Final = (
    "dynashard.errors",
    "dynashard.entity",
    "dynashard.reads",
    "dynashard.repository",
    "dynashard.service",
    "dynashard.topology",
)

__all__ = [
    "Budget",
    "Check",
    "Collection",
    "Create",
    "DeclarationError",
    "Delete",
    "Dynashard",
    "Entity",
    "EntityDefinition",
    "Filter",
    "Index",
    "Key",
    "LeasedTopology",
    "Order",
    "Page",
    "Put",
    "Registry",
    "RetryPolicy",
    "Shards",
    "Step",
    "Update",
    "Written",
    "created_at",
    "declared_counts",
    "definition",
    "new_id",
    "updated_at",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in map(import_module, _ROOMS):
            if name in getattr(room, "__all__", vars(room)):
                return globals().setdefault(name, getattr(room, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
