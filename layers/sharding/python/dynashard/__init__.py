"""The sharding layer: declare an entity and its shards, then read, write and list items over all of its shards.

    from dynashard import Dynashard, Entity, Key, Shards, new_id

Each name is loaded on first use, so a declaration does not load what reads and writes. `dynashard.errors` has the whole
tree of errors.
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
    from dynashard.errors import (
        AlreadyExistsError,
        DeclarationError,
        DynashardError,
        EngineUnavailableError,
        InputError,
        InvalidCursorError,
        NotFoundError,
        OutcomeUnknownError,
        RevisionMismatchError,
        ThrottledError,
        TransactionConflictError,
        TransactionRefusedError,
        ValidationFailedError,
    )
    from dynashard.growth import GrowthOptions, GrowthSettings
    from dynashard.reads import Budget, Filter, Order, Page, Query
    from dynashard.repository import RetryPolicy, Written
    from dynashard.service import Collection, Dynashard
    from dynashard.topology import LeasedTopology, declared_counts
    from dynashard.transactions import Check, Create, Delete, Put, Step, Update
    from dynashard.transport import connect

_ROOMS: Final = (
    "errors",
    "entity",
    "transport",
    "topology",
    "repository",
    "reads",
    "service",
    "growth",
    "transactions",
)
"""Where the names are, in the order in which programs need the rooms."""

__all__ = [
    "AlreadyExistsError",
    "Budget",
    "Check",
    "Collection",
    "Create",
    "DeclarationError",
    "Delete",
    "Dynashard",
    "DynashardError",
    "EngineUnavailableError",
    "Entity",
    "EntityDefinition",
    "Filter",
    "GrowthOptions",
    "GrowthSettings",
    "Index",
    "InputError",
    "InvalidCursorError",
    "Key",
    "LeasedTopology",
    "NotFoundError",
    "Order",
    "OutcomeUnknownError",
    "Page",
    "Put",
    "Query",
    "Registry",
    "RetryPolicy",
    "RevisionMismatchError",
    "Shards",
    "Step",
    "ThrottledError",
    "TransactionConflictError",
    "TransactionRefusedError",
    "Update",
    "ValidationFailedError",
    "Written",
    "connect",
    "created_at",
    "declared_counts",
    "definition",
    "new_id",
    "updated_at",
]


def __getattr__(name: str) -> Any:
    for room in _ROOMS if name in __all__ else ():
        module = import_module(f"{__name__}.{room}")
        if hasattr(module, name):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
