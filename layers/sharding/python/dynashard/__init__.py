"""Dynashard's sharding layer: declare an entity and its shards, get CRUD and listings over all of them."""

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
from dynashard.reads import Budget, Filter, Order, Page
from dynashard.repository import Patience, Written
from dynashard.service import Collection, Dynashard

__all__ = [
    "Budget",
    "Collection",
    "Dynashard",
    "Entity",
    "EntityDefinition",
    "Filter",
    "Index",
    "Key",
    "Order",
    "Page",
    "Patience",
    "Registry",
    "Shards",
    "Written",
    "created_at",
    "definition",
    "new_id",
    "updated_at",
]
