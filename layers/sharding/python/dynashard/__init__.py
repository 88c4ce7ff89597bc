"""Dynashard's sharding layer: declare an entity and its shards, get CRUD and listings over all of them."""

from dynashard.entity import (
    Entity,
    Index,
    Key,
    Registry,
    Shards,
    created_at,
    definition,
    new_id,
    updated_at,
)

__all__ = [
    "Entity",
    "Index",
    "Key",
    "Registry",
    "Shards",
    "created_at",
    "definition",
    "new_id",
    "updated_at",
]
