"""Sum up the parts of the rows of roll-ups, and find them by time."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dynashard.entity import Entity, EntityDefinition, Undecodable, definition, with_revision
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


class Rows(list[Any]):
    """Rows of roll-ups. `undecodable` are stored parts that do not fit their entity; their rows are left out."""

    def __init__(self, rows: Iterable[Any], undecodable: Sequence[Undecodable]) -> None:
        super().__init__(rows)
        self.undecodable = undecodable


def parts_among(
    undecodable: Sequence[Undecodable], entity: EntityDefinition[Any], values: Mapping[str, Any]
) -> list[Undecodable]:
    """Return the stored items whose sort keys have these fields, whatever their other fields are."""
    if not undecodable:
        return []
    pieces = [
        re.escape(part if isinstance(part, str) else entity.sort.field_text(part, values))
        if isinstance(part, str) or part.name in values
        else ".+"
        for part in entity.sort.parts
    ]
    wanted = re.compile("".join(pieces), re.DOTALL)
    return [each for each in undecodable if wanted.fullmatch(each.sort_key)]


def without_slot(row: Entity) -> dict[str, Any]:
    """Return the key fields of a row that its parts share."""
    return {name: getattr(row, name) for name in definition(type(row)).key_fields if name != SLOT}


def summed(parts: Iterable[Entity]) -> list[Entity]:
    """Rows whose parts are summed, in the order of their keys."""
    sums: dict[tuple[str, str], Entity] = {}
    for part in parts:
        entity = definition(type(part))
        key = entity.key_of({**without_slot(part), SLOT: 0})
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
