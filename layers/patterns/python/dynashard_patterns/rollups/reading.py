"""Reading roll-ups: the parts of each row, summed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.errors import InvalidQueryError
from dynashard.service import Dynashard
from dynashard_patterns.rollups.declaration import LEVEL, SLOT, START, Summing
from dynashard_patterns.rollups.levels import Level, check_range


def read_roll_ups(
    roll_ups: Summing[Any],
    db: Dynashard,
    by: Mapping[str, Any],
    *,
    level: str,
    start: datetime,
    end: datetime,
    consistent: bool = False,
) -> list[Any]:
    """The sums of one group, span by span. See `RollUps.read`."""
    span = level_of(roll_ups, level)
    rows = roll_ups.rows_of(span)
    entity = definition(rows)
    check_range(span, start, end)
    given = {**by, LEVEL: span}
    for name in by:
        if name not in entity.key_fields or name in (LEVEL, START, SLOT):
            raise InvalidQueryError(f"{name} is no field by which {entity.name} is summed up", field=name)
    partition = {name: given[name] for name in entity.partition_fields if name in given}
    first, after = sort_text(entity, given, start), sort_text(entity, given, end)
    found = db.collection(rows).scan(partition, start=first, end=after, consistent=consistent)
    wanted = {name: value for name, value in by.items() if name not in partition}
    return summed(each for each in found if all(getattr(each, name) == value for name, value in wanted.items()))


def level_of(roll_ups: Summing[Any], name: str) -> Level:
    """The level of a name.

    Raises:
        InvalidQueryError: nothing is summed up by it.
    """
    if name not in roll_ups.levels:
        raise InvalidQueryError(f"level is one of {', '.join(roll_ups.levels)}", field="level")
    return Level(name)


def sort_text(entity: EntityDefinition[Any], values: Mapping[str, Any], start: datetime) -> str:
    """With what the sort keys of a span begin: a time has the same digits always, so that nothing need end it.

    Raises:
        InvalidKeyError: a field that stands before the time is missing.
    """
    text = ""
    for part in entity.sort.parts:
        text += part if isinstance(part, str) else entity.sort.field_text(part, {**values, START: start})
        if not isinstance(part, str) and part.name == START:
            break
    return text


def summed(parts: Any) -> list[Any]:
    """Rows whose parts are summed, in the order of their keys."""
    sums: dict[tuple[str, str], Any] = {}
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
        entity = definition(type(row))
        entity.with_revision(row, None)
    return [sums[place] for place in sorted(sums)]


def counts_of(row: Entity) -> dict[str, Any]:
    """The numbers of a row."""
    entity = definition(type(row))
    apart = {*entity.key_fields, entity.expires, *entity.server_fields}
    return {name: getattr(row, name) for name in type(row).model_fields if name not in apart}
