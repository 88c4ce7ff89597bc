"""Who reads and writes the items of an entity: those that know every item's home, or one that looks for it."""

from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.repository.reading import HomeReader
from dynashard.repository.scattered import Scattered
from dynashard.repository.store import Store
from dynashard.repository.writing import HomeWriter
from dynashard.routing import rule_of

Reader = HomeReader | Scattered
"""Finds live items by their keys."""
Writer = HomeWriter | Scattered
"""Brings writes to where their items live."""


def reader_and_writer(store: Store, entity: EntityDefinition[Any]) -> tuple[Reader, Writer]:
    """The reader and the writer for an entity's placement."""
    if rule_of(entity).fixed:
        return HomeReader(store, entity), HomeWriter(store, entity)
    scattered = Scattered(store, entity)
    return scattered, scattered
