"""What is summed up of an entity's items, and into what."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

from dynashard.entity import Entity, EntityDefinition, Key, definition
from dynashard.errors import DeclarationError, InvalidKeyError
from dynashard_patterns.rollups.levels import Level, later

E = TypeVar("E", bound=Entity)

LEVEL: Final = "level"
START: Final = "start"
SLOT: Final = "slot"
OWN_FIELDS: Final = frozenset({LEVEL, START, SLOT})
"""The key fields of a row that say which span it is, and which of the parts that are summed at reading."""
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_DIGEST_BYTES: Final = 16
MOST_PARTS: Final = 50
"""All parts of a row fit one transaction while their shard count changes."""

Values = Mapping[str, int | Decimal]
Fields = Mapping[str, Any]


class Counted(Entity, name="dynashard.v1.Counted", key=Key(partition="{id}"), expires="expires_at"):
    """The mark of an item that is counted in some roll-ups. It expires long after the last delivery of its change.

    Its id is a digest of 128 bits of the roll-ups' name and the item's key: a partition of its own for each, so that
    none is hot.
    """

    id: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row that an item is counted in: its entity, its key without the slot, and when it expires."""

    model: type[Entity]
    key: tuple[tuple[str, Any], ...]
    expires: datetime | None = field(compare=False)

    @property
    def level(self) -> Level:
        """How long its span is."""
        return Level(dict(self.key)[LEVEL])

    @property
    def start(self) -> datetime:
        """When its span begins."""
        start: datetime = dict(self.key)[START]
        return start

    @property
    def end(self) -> datetime:
        """When its span ends."""
        return self.level.end(self.start)

    def fields(self, slot: int) -> dict[str, Any]:
        """The key fields of one of its parts."""
        return {**dict(self.key), SLOT: slot}

    def stamp(self) -> dict[str, datetime]:
        """The field of expiry, if the row expires."""
        name = definition(self.model).expires
        return {} if name is None or self.expires is None else {name: self.expires}


@dataclass(frozen=True, slots=True, eq=False)
class Summing(Generic[E]):
    """What `RollUps` declares; its attributes are described there."""

    name: str
    of: type[E]
    at: str
    into: Mapping[type[Entity], Sequence[str]]
    add: Callable[[E], Values]
    by_time: str | None = None
    keep: Mapping[str, timedelta] = field(default_factory=dict)
    spread: int = 16

    def __post_init__(self) -> None:
        of = definition(self.of)
        if self.at not in self.of.model_fields:
            self._refuse(f"{of.name} has no field {self.at}")
        if self.by_time is not None and self.by_time not in of.indexes:
            self._refuse(f"{of.name} has no index {self.by_time}")
        if not 1 <= self.spread <= MOST_PARTS:
            self._refuse(f"a spread of {self.spread}: it is a number from 1 to {MOST_PARTS}")
        levels = [level for each in self.into.values() for level in each]
        for level in (*levels, *self.keep):
            if level not in tuple(Level):
                self._refuse(f"level {level!r} is not one of {', '.join(Level)}")
        if not levels or not all(self.into.values()) or len(set(levels)) < len(levels):
            self._refuse("each level is summed up into one entity, and each entity has at least one")
        for model in self.into:
            self._check_rows(definition(model))
        of.add_check(f"roll-ups:{self.name}", self._check_keys)

    def _check_rows(self, rows: EntityDefinition[Any]) -> None:
        lacking = OWN_FIELDS.difference(rows.key_fields)
        if lacking:
            self._refuse(f"the key of {rows.name} lacks {', '.join(sorted(lacking))}")
        if START not in rows.sort_fields or "{" + START + "}" not in rows.sort.text:
            self._refuse(f"{START} must be in the sort key of {rows.name}, without a format of its own")
        if SLOT not in rows.sort_fields[rows.sort_fields.index(START) :]:
            self._refuse(f"{SLOT} must come after {START} in the sort key of {rows.name}, so that its parts are read")
        if not rows.rule.fixed:
            self._refuse(f"{rows.name} needs keys that have one home, not a random one")
        for name in self.by(rows.model):
            if name not in self.of.model_fields:
                self._refuse(f"{rows.name} is summed up by {name}, which is not a field of {definition(self.of).name}")
        for name, found in rows.model.model_fields.items():
            if name not in rows.key_fields and found.is_required():
                self._refuse(f"field {name} of {rows.name} needs a default: a row begins with its first item")
        if self.keep and rows.expires is None:
            self._refuse(f"{rows.name} is kept for a time but has no field of expiry")

    def _check_keys(self, item: Mapping[str, Any]) -> None:
        """Refuse an item that rows could not be keyed by: its change could never be counted."""
        for model, levels in self.into.items():
            rows, by = definition(model), self.by(model)
            if item.keys() >= set(by):
                own = {LEVEL: Level(levels[0]), START: _ANY_TIME, SLOT: 0}
                try:
                    rows.key_of({name: item[name] for name in by} | own)
                except InvalidKeyError as error:
                    raise InvalidKeyError(
                        f"{error.field}: the keys of its roll-ups, {rows.name}, cannot hold it: {error}",
                        field=error.field,
                    ) from error

    def _refuse(self, reason: str) -> None:
        raise DeclarationError(f"roll-ups {self.name}", reason)

    @property
    def levels(self) -> tuple[Level, ...]:
        """All levels, the shortest spans first."""
        return tuple(each for each in Level if any(each in levels for levels in self.into.values()))

    def rows_of(self, level: Level) -> type[Entity]:
        """The entity whose rows are of a level."""
        return next(model for model, levels in self.into.items() if level in levels)

    def by(self, model: type[Entity]) -> tuple[str, ...]:
        """The fields by which the rows of an entity are summed up."""
        return tuple(name for name in definition(model).key_fields if name not in OWN_FIELDS)

    def rows(self, item: E) -> list[Row]:
        """The rows that an item is counted in."""
        at: datetime = getattr(item, self.at)
        return [self.row(model, item, Level(level), at) for model, levels in self.into.items() for level in levels]

    def row(self, model: type[Entity], item: E, level: Level, at: datetime) -> Row:
        """The row of one level that an item is counted in."""
        start = level.start(at)
        key = {**{name: getattr(item, name) for name in self.by(model)}, LEVEL: level, START: start}
        kept = self.keep.get(level)
        return Row(model, tuple(sorted(key.items())), None if kept is None else later(level.end(start), kept))

    def mark(self, item: E) -> str:
        """The id of the `Counted` of an item."""
        key = definition(self.of).key_of(item)
        text = f"{self.name}\0{key.partition}\0{key.sort}"
        return urlsafe_b64encode(blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()).decode().rstrip("=")
