"""What a resize concerns: a logical partition, all of a family, or an index."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dynashard.entity import EntityDefinition, IndexDefinition, Shards
from dynashard.errors import ConfigurationError, InvalidValueError
from dynashard.key_time import TimeFormat
from dynashard.keys import KeyTemplate
from dynashard.routing import logical_partition_of, shard_keys
from dynashard.schema import PK, SK, TYPE
from dynashard.topology import family_of, index_key, partition_key
from dynashard.transport.interface import Wire

_KEY: Final = re.compile(r"(?P<family>[^:|]+)(?P<kind>[:|])?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a resize concerns.

    Attributes:
        entity: the entity, or any other that shares its logical partitions.
        partition: the logical partition, prefix included: `user.v1.User:abc`. None without an index: every logical
            partition of the family that has no record of its own.
        index: an index of the entity, whose count is one for all logical partitions.
    """

    entity: EntityDefinition[Any]
    partition: str | None = None
    index: IndexDefinition | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.entity, EntityDefinition):
            raise InvalidValueError("Scope takes the declaration of an entity; write Scope(definition(User))")
        if self.index is not None and not isinstance(self.index, IndexDefinition):
            raise InvalidValueError('index of Scope is a declaration; write index=entity.indexes["by_email"]')

    @property
    def family(self) -> str:
        """The key of the family's record."""
        return family_of(self.entity)

    @property
    def key(self) -> str:
        """The key of the record of the resize."""
        if self.index is not None:
            return index_key(self.entity, self.index)
        return self.family if self.partition is None else partition_key(self.entity, self.partition)

    @property
    def shards(self) -> Shards | None:
        """The declared shards of what it concerns."""
        return self.index.shards if self.index else self.entity.shards

    @property
    def whole_family(self) -> bool:
        """Whether it concerns all logical partitions without a record of their own."""
        return self.partition is None and self.index is None

    @property
    def moves(self) -> bool:
        """Whether its items or index entries move; parts, and items of a random placement, do not."""
        return self.index is not None or self.entity.rule.moves

    def moves_by(self, *, rewrites: bool) -> bool:
        """Whether a resize moves items, or entries of an index if it `rewrites` them."""
        return self.moves and (self.index is None or rewrites)

    @property
    def time(self) -> TimeFormat | None:
        """The format of the time that places its items, so that a new count holds for keys from some time on.

        Nothing moves then. None if one count holds for all keys.
        """
        return self.entity.time if self.index is None else None

    def shard_keys(self, count: int) -> list[str]:
        """Return the stored partition keys of its logical partition under a count; none if it is not one partition."""
        if self.partition is None:
            return []
        return shard_keys(self.entity.rule, self.partition, self.entity.separator, count)

    @classmethod
    def of_key(cls, key: str, entities: Iterable[EntityDefinition[Any]]) -> "Scope":
        """Return the scope of a record's key; raises `ConfigurationError` if no entity has its family or index."""
        found = _KEY.fullmatch(key)
        family = [entity for entity in entities if found and family_of(entity) == found["family"]]
        if not found or not family:
            raise ConfigurationError(f"no entity is known to which the topology record {key!r} belongs")
        first = family[0]
        if found["kind"] is None:
            return cls(first)
        if found["kind"] == "|":
            for entity in family:
                for index in entity.indexes.values():
                    if index.slot == found["rest"] and index.shards:
                        return cls(entity, index=index)
            raise ConfigurationError(f"no entity of {found['family']} has a sharded index in the slot of {key!r}")
        return cls(first, partition=key if first.prefix else found["rest"])


class Family:
    """Entities that share their logical partitions, in the order of their declaration."""

    def __init__(self, members: Iterable[EntityDefinition[Any]]) -> None:
        self.members = tuple(members)
        self._by_name = {member.name: member for member in self.members}

    def member_of(self, item: Wire) -> EntityDefinition[Any] | None:
        """Return the entity of a stored item of the family, by `Type` or, for an adopted item, by its sort key."""
        if TYPE in item:
            return self._by_name.get(item[TYPE].get("S", ""))
        if len(self.members) == 1 and self.members[0].prefix:
            return self.members[0]
        for member in self.members:
            if shape(member.sort).fullmatch(item[SK]["S"]):
                return member
        return None

    def owner(self, item: Wire) -> EntityDefinition[Any] | None:
        """Return the entity that counts a stored item as its own: by `Type`, or one that has items without a type."""
        if TYPE in item:
            return self.member_of(item)
        return self.member_of(item) if self.untyped and self.has(item) else None

    def has(self, item: Wire) -> bool:
        """Whether a stored item or marker stands in a logical partition of the family.

        Without a prefix, keys do not show whose they are: then the item must have the type of a member, unless the
        family is declared to adopt what has none, by `adopt` or by the separator of published keys.
        """
        if not self.spans(item):
            return False
        if self.members[0].prefix:
            return True
        return (self.untyped or TYPE in item) and self.member_of(item) is not None

    @property
    def untyped(self) -> bool:
        """Whether items may have neither a type nor a revision, because another program has written them."""
        return self.members[0].untyped

    @property
    def adopts(self) -> bool:
        """Whether the family is declared with `adopt`, so that items may have neither a type nor a revision."""
        return self.members[0].adopts

    def spans(self, item: Wire) -> bool:
        """Whether a stored partition key has the form of one of the family."""
        first, stored = self.members[0], item[PK]["S"]
        return fits(first, logical_partition_of(first, stored)) or fits(first, stored)


def fits(entity: EntityDefinition[Any], partition: str) -> bool:
    """Whether a text can be a logical partition of an entity."""
    prefix = f"{entity.prefix}{entity.separator}" if entity.prefix else ""
    return partition.startswith(prefix) and bool(shape(entity.partition, "[^:]").fullmatch(partition[len(prefix) :]))


@lru_cache(maxsize=512)
def shape(template: KeyTemplate, character: str = ".") -> re.Pattern[str]:
    """Return the pattern of the texts that a template renders, with the pattern of one character of a field."""
    parts = [
        re.escape(part) if isinstance(part, str) else f"{character}{{{part.width}}}" if part.width else f"{character}+"
        for part in template.parts
    ]
    return re.compile("".join(parts), re.DOTALL)
