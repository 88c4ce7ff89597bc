"""The reference reader: stored items decoded and checked attribute by attribute, which takes every item.

The compiled reader (`dynashard.compiled.reader`) reads most items, and leaves the others to this one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import floor
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticUndefined

from dynashard.codec import decode_value
from dynashard.entity.assignment import Assignment
from dynashard.entity.checks import holds_json, plain_types
from dynashard.entity.judging import MALFORMED, marker_problem
from dynashard.entity.values import duration, json_numbers
from dynashard.entity.versions import Upgraded, Versioned, Versions, as_upgraded, undecodable
from dynashard.errors import InvalidValueError
from dynashard.record import Record, revision_in, with_revision
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK

if TYPE_CHECKING:
    from dynashard.entity.tolerance import Tolerance

T = TypeVar("T", bound=Record)


class _Entity(Versioned, Protocol[T]):
    """What reading needs to know of a declaration."""

    model: type[T]
    nested: bool
    typed_dicts: bool
    versions: Versions

    @property
    def assignment(self) -> Assignment: ...
    @property
    def tolerance(self) -> "Tolerance[T]": ...
    @property
    def following(self) -> frozenset[str]: ...
    @property
    def rewritten(self) -> frozenset[str]: ...
    def decode(self, wire: Mapping[str, Any]) -> T: ...
    def problem(self, values: Mapping[str, Any], wire: Mapping[str, Any]) -> str | None: ...


class ReferenceReader(Generic[T]):
    """Reads the stored items of an entity."""

    def __init__(self, entity: _Entity[T]) -> None:
        self._entity = entity
        fields = entity.model.model_fields
        self._durations = frozenset(n for n, f in fields.items() if timedelta in plain_types(f.annotation))
        self._free = frozenset(n for n, f in fields.items() if holds_json(f.annotation))
        self._stored = fields.keys() - {entity.expires} - entity.attachments.keys()
        # Models in an item refuse unknown fields, and stored ones may have fields that have been removed since.
        self._options: dict[str, Any] = {"extra": "ignore"} if entity.nested else {}

    def decode(self, wire: Mapping[str, Any]) -> T:
        """Return the item; see `EntityDefinition.decode`."""
        entity = self._entity
        if MOVED_TO in wire and (damage := marker_problem(wire)):
            raise undecodable(entity, wire, damage)
        upgraded = entity.versions.upgraded(entity, wire) if entity.versions.differs(wire) else None
        wire = wire if upgraded is None else upgraded.wire
        try:
            item = self._validated(wire)
            if PK in wire and (problem := entity.problem(item.__dict__, wire)):
                raise undecodable(entity, wire, problem)
        except MALFORMED as error:
            raise undecodable(entity, wire, f"its attributes are not as the layer stores them: {error!r}") from error
        if upgraded is None and entity.rewritten and not self._has_stored_form(item, wire):
            # As one of an earlier version: its next write stores all of it.
            upgraded = Upgraded(dict(wire), frozenset())
        return item if upgraded is None else as_upgraded(item, upgraded)

    def fields(self, wire: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return some fields; see `EntityDefinition.decode_fields`."""
        entity = self._entity
        values: dict[str, Any] = {}
        if entity.versions.differs(wire):
            names = tuple(names)
            # An upgrade does not change the key, and what was read of the item may be no more than that.
            if not all(name in wire and name in entity.key_fields for name in names):
                wire = entity.versions.readable(entity, wire)
        for name in names:
            is_expiry = name == entity.expires
            attribute = wire.get(EXPIRES_AT if is_expiry else name)
            if attribute is None:
                default = entity.model.model_fields[name].get_default(call_default_factory=False)
                values[name] = None if default is PydanticUndefined else default
            elif is_expiry:
                values[name] = self._expiry(wire)
            else:
                try:
                    values[name] = entity.assignment.check(name, self.value(name, attribute), stored=True)
                except InvalidValueError as error:
                    found = entity.tolerance.field(wire, name, self.value(name, attribute), error.__cause__)
                    if found is None:
                        raise undecodable(entity, wire, str(error)) from error
                    [values[name]] = found
        return values

    def part(self, wire: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Return some fields, of the item if they follow from others; see `EntityDefinition.part`."""
        entity = self._entity
        if not entity.following.isdisjoint(names):
            item = entity.decode(wire)
            return {name: item.__dict__[name] for name in names}
        try:
            values = self.fields(wire, dict.fromkeys((*names, *entity.key_fields)))
            problem = entity.problem(values, wire)
        except MALFORMED as error:
            problem = f"its attributes are not as the layer stores them: {error!r}"
        if problem:
            raise undecodable(entity, wire, problem)
        return {name: values[name] for name in names}

    def value(self, name: str, attribute: Any) -> Any:
        """Return the value of a stored attribute, before its field validates it."""
        if name == self._entity.expires:
            return self._expiry({EXPIRES_AT: attribute})
        value = decode_value(attribute)
        if name in self._durations:
            return duration(value)
        return json_numbers(value) if name in self._free else value

    def _validated(self, wire: Mapping[str, Any]) -> T:
        entity = self._entity
        values = {name: self.value(name, wire[name]) for name in wire if name in self._stored}
        if entity.expires is not None and EXPIRES_AT in wire:
            values[entity.expires] = self._expiry(wire)
        try:
            item: T = entity.model.__pydantic_validator__.validate_python(values, **self._options)
        except ValidationError as error:
            if (tolerated := entity.tolerance.stored(wire, values, error)) is not None:
                return with_revision(tolerated, revision_in(wire))
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            advice = "Give new fields a default, or migrate the stored items"
            raise undecodable(entity, wire, f"{where}: {first['msg']}. {advice}") from error
        return with_revision(item, revision_in(wire))

    def _has_stored_form(self, item: T, wire: Mapping[str, Any]) -> bool:
        from dynashard.compiled.stored_form import has_stored_form  # noqa: PLC0415 - few items have objects

        return all(
            has_stored_form(item.__dict__[name], wire.get(name), typed_dicts=self._entity.typed_dicts)
            for name in self._entity.rewritten & item.model_fields_set
        )

    def _expiry(self, wire: Mapping[str, Any]) -> datetime:
        stored = wire[EXPIRES_AT]
        try:
            # Adopted items may hold fractions of a second.
            return datetime.fromtimestamp(floor(float(stored["N"])), UTC)
        except (KeyError, OverflowError, ValueError, OSError):
            problem = f"{EXPIRES_AT} {stored} is not a time in epoch seconds"
            raise undecodable(self._entity, wire, problem) from None
