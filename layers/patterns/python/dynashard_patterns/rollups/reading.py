"""Sum up the parts of the rows of roll-ups, and find them by time."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from dynashard.entity import Entity, EntityDefinition, definition, with_revision
from dynashard.errors import InvalidQueryError
from dynashard_patterns.rollups.declaration import SLOT, START, Summing
from dynashard_patterns.rollups.levels import Level


def level_of(roll_ups: Summing[Any], name: str) -> Level:
    """The level of a name.

    Raises:
        InvalidQueryError: nothing is summed up by it.
    """
    if name not in roll_ups.levels:
        raise InvalidQueryError(f"level is one of {', '.join(roll_ups.levels)}", field="level")
    return Level(name)


def sort_text(entity: EntityDefinition[Any], values: Mapping[str, Any], start: datetime) -> str:
    """Return the beginning of the sort keys of a span. A time always has the same digits, so nothing has to end it.

    Raises:
        InvalidKeyError: a field before the time is missing.
    """
    text = ""
    for part in entity.sort.parts:
        text += part if isinstance(part, str) else entity.sort.field_text(part, {**values, START: start})
        if not isinstance(part, str) and part.name == START:
            break
    return text


def summed(parts: Iterable[Entity]) -> list[Entity]:
    """Rows whose parts are summed, in the order of their keys."""
    sums: dict[tuple[str, str], Entity] = {}
    for part in parts:
        entity = definition(type(part))
        fields = {name: getattr(part, name) for name in entity.key_fields}
        key = entity.key_of({**fields, SLOT: 0})
        place = (key.partition, key.sort)
        so_far = sums.get(place)
        counted = counts_of(part)
        if so_far is not None:
            counted = {name: value + getattr(so_far, name) for name, value in counted.items()}
        sums[place] = part.model_copy(update={SLOT: 0, **counted})
    for row in sums.values():
        with_revision(row, None)
    return [sums[place] for place in sorted(sums)]


def counts_of(row: Entity) -> dict[str, Any]:
    """The numbers of a row."""
    entity = definition(type(row))
    apart = {*entity.key_fields, entity.expires, *entity.server_fields}
    return {name: getattr(row, name) for name in type(row).model_fields if name not in apart}
