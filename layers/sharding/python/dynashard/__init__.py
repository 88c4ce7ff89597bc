"""The sharding layer: declare an entity and its shards, then read, write and list items over all of its shards.

    from dynashard import Dynashard, Entity, Key, Shards, new_id

Each name is loaded on first use, so a declaration does not load what reads and writes. `dynashard.errors` has the whole
tree of errors.
"""

# ruff: noqa: PLC0415 - a room is loaded when one of its names is needed

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynashard.awaiting import AsyncCollection, AsyncDynashard
    from dynashard.entity import (
        Entity,
        EntityDefinition,
        Index,
        Key,
        Registry,
        Retention,
        Shards,
        Unique,
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
        NotUniqueError,
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

__all__ = [
    "AlreadyExistsError",
    "AsyncCollection",
    "AsyncDynashard",
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
    "NotUniqueError",
    "Order",
    "OutcomeUnknownError",
    "Page",
    "Put",
    "Query",
    "Registry",
    "Retention",
    "RetryPolicy",
    "RevisionMismatchError",
    "Shards",
    "Step",
    "ThrottledError",
    "TransactionConflictError",
    "TransactionRefusedError",
    "Unique",
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


def _rooms() -> Iterator[ModuleType]:
    """Load the rooms that have these names, one after another, in the order in which programs need them."""
    from dynashard import errors

    yield errors
    from dynashard import entity

    yield entity
    from dynashard import transport

    yield transport
    from dynashard import topology

    yield topology
    from dynashard import repository

    yield repository
    from dynashard import reads

    yield reads
    from dynashard import service

    yield service
    from dynashard import growth

    yield growth
    from dynashard import transactions

    yield transactions
    # Last, because only programs on asyncio need it.
    from dynashard import awaiting

    yield awaiting


def __getattr__(name: str) -> object:
    for room in _rooms() if name in __all__ else ():
        if hasattr(room, name):
            return globals().setdefault(name, getattr(room, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
