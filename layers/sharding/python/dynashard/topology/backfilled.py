"""What backfills have completed, as the record of a family has it, and which listings may lack items until then.

    what                        key                     goal that is reached
    `dynashard migrate`         `user.v1.User`          the version, such as `3`
    `dynashard index build`     `user.v1.User|GSI2`     the templates of the index

An index that is declared with `backfill=True` may lack the items that were stored before it. An index of an entity with
upgrades may lack those whose upgrade changes a field of its key.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dynashard.entity import EntityDefinition, IndexDefinition


class Goal(NamedTuple):
    """What a backfill is about, and what it reaches."""

    key: str
    value: str


def version_goal(entity: EntityDefinition[Any]) -> Goal:
    """Return the goal of rewriting an entity's items in the form of its version."""
    return Goal(entity.name, str(entity.versions.number))


def index_goal(entity: EntityDefinition[Any], index: IndexDefinition) -> Goal:
    """Return the goal of writing the entries of an index. It differs for an index with other templates."""
    templates = f"{index.prefix}{index.separator}{index.partition.text} {index.sort.text}"
    return Goal(f"{entity.name}|{index.slot}", templates)


def is_complete(entity: EntityDefinition[Any], index: IndexDefinition, backfilled: Mapping[str, str]) -> bool:
    """Whether an index has all items that belong to it, by the goals that were reached."""
    built, migrated = index_goal(entity, index), version_goal(entity)
    if index.backfill and backfilled.get(built.key) != built.value:
        return False
    # A later version that was reached and rolled back has left no earlier items.
    reached = backfilled.get(migrated.key, "0")
    return not entity.versions.upgrades or (reached.isdecimal() and int(reached) >= entity.versions.number)
