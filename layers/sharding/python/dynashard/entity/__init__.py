"""Declarations: from a pydantic class with a key and shards to a compiled entity."""

from operator import attrgetter
from typing import TYPE_CHECKING

from pydantic import BaseModel, RootModel

from dynashard.codec import register_encoder
from dynashard.entity.checks import plain_types
from dynashard.entity.declaration import (
    Index,
    Key,
    OutOfLine,
    Retention,
    Shards,
    Unique,
    created_at,
    new_id,
    updated_at,
)
from dynashard.entity.definition import EntityDefinition
from dynashard.entity.guarantee import WriteGuarantee, guarantee_of
from dynashard.entity.item_keys import IndexDefinition, ItemKey
from dynashard.entity.judging import (
    Undecodable,
    expiry,
    judged,
    marked_count,
    marker_problem,
    unrevised_problem,
    verdict,
)
from dynashard.entity.model import Entity, definition
from dynashard.entity.registry import REGISTRY, Registry
from dynashard.entity.values import members
from dynashard.record import UNREVISED, Revision, revision_in, with_revision

if TYPE_CHECKING:
    from dynashard.entity.key_times import Ulid

# A model inside an item is stored as a map of its fields, and one without fields as what it holds.
register_encoder(BaseModel, members)
register_encoder(RootModel, attrgetter("root"))

__all__ = [
    "REGISTRY",
    "UNREVISED",
    "Entity",
    "EntityDefinition",
    "Index",
    "IndexDefinition",
    "ItemKey",
    "Key",
    "OutOfLine",
    "Registry",
    "Retention",
    "Revision",
    "Shards",
    "Ulid",
    "Undecodable",
    "Unique",
    "WriteGuarantee",
    "created_at",
    "definition",
    "expiry",
    "guarantee_of",
    "judged",
    "marked_count",
    "marker_problem",
    "new_id",
    "plain_types",
    "revision_in",
    "unrevised_problem",
    "updated_at",
    "verdict",
    "with_revision",
]


def __getattr__(name: str) -> object:
    if name == "Ulid":
        from dynashard.entity.key_times import Ulid  # noqa: PLC0415 - few entities are placed by time

        return globals().setdefault(name, Ulid)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
