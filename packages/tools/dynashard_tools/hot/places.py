"""From stored partition keys to what the command line calls them: entity, logical partition, index, shard."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynashard import definition
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard_serving.declare import Exposed


@dataclass(frozen=True, slots=True)
class Place:
    """What a stored partition key belongs to.

    Attributes:
        entity: the name of the entity on the command line; the first one of a family.
        definition: of that entity.
        index: None for keys of the table.
        partition: the logical partition without its prefix, such as `abc`.
    """

    entity: str
    definition: EntityDefinition[Any]
    index: IndexDefinition | None
    partition: str

    @property
    def sharded(self) -> bool:
        """Whether it has a shard count."""
        return (self.definition.shards if self.index is None else self.index.shards) is not None

    @property
    def arguments(self) -> str:
        """Return the arguments that name what has the shard count, as a shell takes them; of an index one for all."""
        return shlex.join([self.entity, *([self.partition] if self.index is None else ["--index", self.index.name])])


def place_of(stored: str, slot: str | None, entities: Sequence[Exposed]) -> Place | None:
    """Return what a stored partition key belongs to; None if no entity has keys that begin so.

    Args:
        stored: such as `user.v1.User:abc:11`.
        slot: the index whose partition key it is; None for the table.
        entities: those of the domain.
    """
    found = [(each, match) for each in _candidates(slot, entities) if (match := _pattern(each).fullmatch(stored))]
    if not found:
        return None
    # One prefix may begin with another: `team` and `team:archive`.
    best, match = max(found, key=lambda pair: len(_prefix(pair[0])))
    return replace(best, partition=match["partition"])


def _candidates(slot: str | None, entities: Sequence[Exposed]) -> Iterator[Place]:
    for each in entities:
        found = definition(each.entity)
        if slot is None:
            yield Place(each.path, found, None, "")
        else:
            indexes = (index for index in found.indexes.values() if index.slot == slot)
            yield from (Place(each.path, found, index, "") for index in indexes)


def _prefix(place: Place) -> str:
    of = place.index or place.definition
    return f"{of.prefix}{of.separator}" if of.prefix else ""


def _pattern(place: Place) -> re.Pattern[str]:
    """Match the stored partition keys of a place, with and without the suffix of a shard."""
    of = place.index or place.definition
    # No value within a partition has the separator that keys usually have.
    value = f"[^{DEFAULT_SEPARATOR}]+" if of.separator == DEFAULT_SEPARATOR else ".+?"
    parts = (re.escape(part) if isinstance(part, str) else value for part in of.partition.parts)
    shard = f"(?:{re.escape(of.separator)}[0-9]+)?" if place.sharded else ""
    return re.compile(f"{re.escape(_prefix(place))}(?P<partition>{''.join(parts)}){shard}")
